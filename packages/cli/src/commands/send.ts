import { join } from 'node:path'
import { WeirError } from '@weir/core'
import { localSecrets } from '@weir/system'
import type { Command } from 'commander'
import type { Outgoing } from '../demo/requests.ts'
import { exitCodes } from '../exit-codes.ts'
import { stateDirOf } from '../paths.ts'
import { runningSystem } from '../system-file.ts'

type Tamper = 'signature' | 'body' | 'timestamp'

interface Options {
  readonly times: string
  readonly concurrency: string
  readonly tamper?: string
  readonly url?: string
  readonly json?: boolean
}

const tampers: readonly Tamper[] = ['signature', 'body', 'timestamp']

/** `weir send`: a signed sample, as the provider would send it. */
export function register(program: Command): void {
  program
    .command('send')
    .description('Send a sample event to the running system, signed as its provider signs.')
    .argument('[source]', 'github, stripe, shop or deploys')
    .argument('[sample]', 'which sample; without it the samples are listed')
    .option('--times <n>', 'send the same delivery so many times', '1')
    .option('--concurrency <n>', 'so many at once', '1')
    .option('--tamper <what>', 'break the signature, the body or the timestamp after signing')
    .option('--url <url>', 'where ingest is; default that of `weir up`')
    .option('--json', 'print one JSON object per answer')
    .addHelpText('after', '\nExample: weir send github release --times 3')
    .action(async (source: string | undefined, sample: string | undefined, options: Options) => {
      process.exitCode = await send(source, sample, options)
    })
}

async function send(source: string | undefined, sample: string | undefined, options: Options): Promise<number> {
  const { samplesOf, sampleRequest } = await import('../demo/samples.ts')
  if (source === undefined || sample === undefined) {
    for (const [name, samples] of samplesOf(source)) console.log(`${name}: ${samples.join(', ')}`)
    return exitCodes.ok
  }
  const request = sampleRequest(localSecrets(join(stateDirOf('up'), 'secrets.json')), source, sample)
  const base = options.url ?? runningSystem().ingest
  const times = countOf('--times', options.times)
  let next = 0
  let refused = 0
  const lane = async (): Promise<void> => {
    for (let i = next++; i < times; i = next++) {
      const answer = await sendOne(base, request, tamperOf(options.tamper))
      if (answer.status >= 300) refused += 1
      console.log(options.json === true ? JSON.stringify(answer) : `${answer.status} ${answer.text}`)
    }
  }
  await Promise.all(Array.from({ length: Math.min(times, countOf('--concurrency', options.concurrency)) }, lane))
  return refused === 0 ? exitCodes.ok : exitCodes.failed
}

async function sendOne(
  base: string,
  request: Outgoing,
  tamper: Tamper | null,
): Promise<{ status: number; text: string }> {
  const now = tamper === 'timestamp' ? Date.now() - 3_600_000 : Date.now()
  const headers = { ...request.headers(now) }
  if (tamper === 'signature') {
    for (const name of Object.keys(headers)) if (name.includes('signature')) headers[name] = broken(headers[name] ?? '')
  }
  const body = tamper === 'body' ? Buffer.concat([request.body, Buffer.from(' ')]) : request.body
  try {
    const response = await fetch(base + request.path, {
      method: 'POST',
      body: new Uint8Array(body),
      headers,
      signal: AbortSignal.timeout(30_000),
    })
    return { status: response.status, text: await response.text() }
  } catch (error) {
    throw new WeirError('prerequisite_missing', `ingest at ${base} does not answer; is Weir up? (weir status)`, {
      cause: error,
    })
  }
}

/** Another digit at the end: still of the right form. */
function broken(signature: string): string {
  return signature.slice(0, -2) + (signature.at(-2) === 'a' ? 'b' : 'a') + signature.slice(-1)
}

function tamperOf(text: string | undefined): Tamper | null {
  if (text === undefined) return null
  const found = tampers.find(tamper => tamper === text)
  if (found === undefined) throw new WeirError('invalid_value', `--tamper ${text}: give one of ${tampers.join(', ')}`)
  return found
}

function countOf(option: string, text: string): number {
  const count = Number(text)
  if (Number.isSafeInteger(count) && count >= 1 && count <= 100_000) return count
  throw new WeirError('invalid_value', `${option} ${text}: give a whole number from 1 to 100000`)
}
