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

interface Story {
  readonly events: readonly {
    readonly eventKeyText: string | null
    readonly steps: readonly { readonly sentence: string }[]
  }[]
  readonly moreEvents: boolean
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
  const answer = await ask(url, analystKey(options))
  const text = await answer.text()
  if (options.json === true) console.log(text)
  if (answer.status === 404) {
    if (options.json !== true)
      process.stderr.write(
        `weir: nothing is known about "${what}". Has it landed? See ${new URL('/v1/coverage', base).href}\n`,
      )
    return exitCodes.failed
  }
  if (!answer.ok) throw new WeirError('internal', `the audit API answered ${answer.status}: ${text}`)
  if (options.json !== true) print(JSON.parse(text) as Story)
  return exitCodes.ok
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
  for (const event of story.events) {
    console.log(`\n${event.eventKeyText ?? 'an event that could not be read'}`)
    for (const { sentence } of event.steps) console.log(`  ${sentence}`)
  }
  if (story.moreEvents)
    console.log('\n… and older events; ask with a narrower question, or page through GET /v1/messages')
}
