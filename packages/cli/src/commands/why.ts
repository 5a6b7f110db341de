import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { WeirError } from '@weir/core'
import { localSecrets } from '@weir/system'
import type { Command } from 'commander'
import { exitCodes } from '../exit-codes.ts'
import { stateDirOf } from '../paths.ts'
import { runningSystem } from '../system-file.ts'

interface Options {
  readonly tenant?: string
  readonly url?: string
  readonly keyFile?: string
  readonly json?: boolean
}

interface EventStory {
  readonly eventKeyText: string | null
  readonly steps: readonly { readonly sentence: string }[]
}

interface Story {
  readonly events: readonly EventStory[]
  readonly moreEvents: boolean
  readonly complete: boolean
  readonly related: readonly (EventStory & { readonly relation: 'led_to_it' | 'followed' })[]
}

/** `weir why`: what happened to an event, and why. */
export function register(program: Command): void {
  program
    .command('why')
    .description('Tell what happened and why, from the audit store. Exit code 1 when nothing is known.')
    .argument('<what>', 'event key (text or hex), delivery id, decision id, subject or run')
    .option('--tenant <name>', 'only this tenant')
    .option('--url <url>', 'audit API; default WEIR_AUDIT_URL, else that of `weir up`')
    .option('--key-file <path>', 'file with an analyst key; default WEIR_ANALYST_KEY, else that of `weir up`')
    .option('--json', 'print the answer as one JSON object')
    .addHelpText('after', '\nExample: weir why octo/hello')
    .action(async (what: string, options: Options) => {
      process.exitCode = await why(what, options)
    })
}

async function why(what: string, options: Options): Promise<number> {
  const base = options.url ?? process.env['WEIR_AUDIT_URL'] ?? runningSystem().audit
  const url = new URL('/v1/why', base)
  url.searchParams.set('q', what)
  if (options.tenant !== undefined) url.searchParams.set('tenant', options.tenant)
  const key = analystKey(options)
  const answer = await ask(url, key)
  const text = await answer.text()
  if (options.json === true) console.log(text)
  if (answer.status === 404) {
    if (options.json !== true)
      process.stderr.write(`weir: nothing is known about "${what}". ${await landedSoFar(base, key)}\n`)
    return exitCodes.failed
  }
  if (!answer.ok) throw new WeirError('internal', `the audit API answered ${answer.status}: ${text}`)
  if (options.json !== true) print(JSON.parse(text) as Story)
  return exitCodes.ok
}

/** How far the store is, for someone whose event it does not know. */
async function landedSoFar(base: string, key: string): Promise<string> {
  const url = new URL('/v1/coverage', base)
  const answer = await ask(url, key)
  if (!answer.ok) return `How far the audit store is: ${url.href}`
  const { logs } = (await answer.json()) as { readonly logs: readonly { readonly messages: number }[] }
  const messages = logs.reduce((sum, log) => sum + log.messages, 0)
  return `The audit store holds ${messages} messages of ${logs.length} partitions so far (${url.href}); a message lands within seconds.`
}

async function ask(url: URL, key: string): Promise<Response> {
  try {
    return await fetch(url, { headers: { authorization: `Bearer ${key}` }, signal: AbortSignal.timeout(30_000) })
  } catch (error) {
    throw new WeirError(
      'prerequisite_missing',
      `the audit API at ${url.origin} does not answer; is Weir up? (weir status)`,
      { cause: error },
    )
  }
}

function analystKey(options: Options): string {
  if (options.keyFile !== undefined) return readFileSync(options.keyFile, 'utf8').trim()
  return process.env['WEIR_ANALYST_KEY'] ?? localSecrets(join(stateDirOf('up'), 'secrets.json')).apiKeys.analyst
}

function print(story: Story): void {
  for (const event of story.events) printEvent(event)
  if (!story.complete) console.log('\n… and more messages of these events: page through GET /v1/messages')
  if (story.moreEvents)
    console.log('\n… and perhaps older events; ask with a narrower question, or page through GET /v1/messages')
  const linked = { led_to_it: 'What led to it:', followed: 'What followed:' } as const
  for (const [relation, title] of Object.entries(linked)) {
    const events = story.related.filter(event => event.relation === relation)
    if (events.length > 0) console.log(`\n${title}`)
    for (const event of events) printEvent(event)
  }
}

function printEvent({ eventKeyText, steps }: EventStory): void {
  console.log(`\n${printable(eventKeyText ?? 'no event')}`)
  for (const { sentence } of steps) console.log(`  ${printable(sentence)}`)
}

/** Senders wrote parts of these texts: control characters must not reach the terminal. */
function printable(text: string): string {
  // oxlint-disable-next-line no-control-regex -- control characters are what is looked for
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, c => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`)
}
