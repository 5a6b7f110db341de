import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { createLifecycle, type HostProcess } from './lifecycle.ts'
import { createLog } from './log.ts'

const program = fileURLToPath(new URL('testing/stoppable-service.ts', import.meta.url))

interface Run {
  /** Messages of the log lines, in order. */
  readonly messages: readonly string[]
  readonly errors: string
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stopMs: number
}

/** Runs a scenario, sends each signal when the log shows the message it waits for, and tells how the process ended. */
async function run(
  scenario: string,
  signals: readonly (readonly [after: string, signal: NodeJS.Signals])[],
  env: Record<string, string> = {},
): Promise<Run> {
  const child = spawn(process.execPath, [program, scenario], {
    // Its options too: an older Node 22 needs one to run TypeScript.
    env: {
      PATH: process.env['PATH'] ?? '',
      NODE_OPTIONS: process.env['NODE_OPTIONS'] ?? '',
      WEIR_SHUTDOWN_TIMEOUT_MS: '8000',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 15_000,
    killSignal: 'SIGKILL',
  })
  const waiting = [...signals]
  let output = ''
  let errors = ''
  let firstSignalMs = 0
  const messages = (): string[] => output.split('\n').flatMap(messageOf)
  child.stderr.on('data', (bytes: Buffer) => (errors += bytes.toString()))
  child.stdout.on('data', (bytes: Buffer) => {
    output += bytes.toString()
    for (let next = waiting[0]; next && messages().includes(next[0]); next = waiting[0]) {
      waiting.shift()
      if (firstSignalMs === 0) firstSignalMs = Date.now()
      child.kill(next[1])
    }
  })
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
  return { messages: messages(), errors, code, signal, stopMs: Date.now() - firstSignalMs }
}

function messageOf(line: string): string[] {
  if (!line.endsWith('}')) return []
  const fields = JSON.parse(line) as { readonly msg: string }
  return [fields.msg]
}

const orderly = ['stopping', 'closed door', 'work in hand is done', 'closed pool', 'stopped']

describe.concurrent('a service', () => {
  it('lets work in hand finish on SIGTERM, closing what it opened last first', async () => {
    const { messages, code } = await run('busy', [['started', 'SIGTERM']])
    expect(messages).toEqual(['started', ...orderly])
    expect(code).toBe(0)
  })

  it('does the same on SIGINT', async () => {
    const { messages, code } = await run('busy', [['started', 'SIGINT']])
    expect(messages).toEqual(['started', ...orderly])
    expect(code).toBe(0)
  })

  it('ends at once on the second signal', async () => {
    const { messages, code } = await run('hanging', [
      ['started', 'SIGTERM'],
      ['stopping', 'SIGTERM'],
    ])
    expect(messages).toEqual(['started', 'stopping', 'second signal, exiting at once'])
    expect(code).toBe(143)
  })

  it('ends at its deadline when something does not close, with code 1, and closes the rest', async () => {
    const { messages, code, stopMs } = await run('hanging', [['started', 'SIGTERM']], {
      WEIR_SHUTDOWN_TIMEOUT_MS: '300',
    })
    expect(messages).toContain('stopping')
    expect(messages.some(message => message.includes('took too long'))).toBe(true)
    expect(code).toBe(1)
    expect(stopMs).toBeGreaterThanOrEqual(250)
    expect(stopMs).toBeLessThan(5_000)
  })

  it('does not let one slow closer use up the time of the others', async () => {
    const { messages, code } = await run('hanging briefly', [['started', 'SIGTERM']])
    expect(messages).toEqual(['started', 'stopping', 'close took too long', ...orderly.slice(1)])
    expect(code).toBe(1)
  })

  it('closes the rest when one closer fails', async () => {
    const { messages, code } = await run('failing to close', [['started', 'SIGTERM']])
    expect(messages).toEqual(['started', 'stopping', 'close failed', ...orderly.slice(1)])
    expect(code).toBe(1)
  })

  it('closes what is opened after a stop during start', async () => {
    const { messages, code } = await run('slow start', [['starting', 'SIGTERM']])
    expect(messages).toEqual(['starting', ...orderly])
    expect(code).toBe(0)
  })

  it('that cannot start says why in one line, closes what it opened and ends with code 1', async () => {
    const { messages, errors, code } = await run('failing start', [])
    expect(errors.split('\n')[0]).toBe('stoppable: cannot start: Error: nothing to connect to')
    expect(messages).toEqual(orderly)
    expect(code).toBe(1)
  })

  it.each(['failing later', 'rejecting later'])('%s stops in order and ends with code 1', async scenario => {
    const { messages, code } = await run(scenario, [])
    expect(messages).toEqual(['started', 'failed, stopping', ...orderly])
    expect(code).toBe(1)
  })

  it('does not start with a bad setting, and names it', async () => {
    const { messages, errors, code } = await run('busy', [], { WEIR_LOG_LEVEL: 'loud' })
    expect(errors).toContain('stoppable: cannot start: Bad settings in the environment:\n  WEIR_LOG_LEVEL="loud"')
    expect(messages).toEqual([])
    expect(code).toBe(1)
  })

  it('ends after an orderly stop although something holds the process', async () => {
    const { messages, code } = await run('holding on', [['started', 'SIGTERM']])
    expect(messages).toEqual(['started', 'stopping', 'closed pool', 'stopped'])
    expect(code).toBe(0)
  })
})

describe('createLifecycle', () => {
  const quiet = createLog({ service: 'test', level: 'error', destination: { write: () => {} } })
  // The process is a port: ending the test's own process would end the test.
  const host = (): HostProcess & { codes: number[] } => {
    const codes: number[] = []
    return { codes, on: () => {}, exit: code => void codes.push(code), setExitCode: code => void codes.push(code) }
  }

  it('stops once when it is told twice', async () => {
    const lifecycle = createLifecycle({ log: quiet, timeoutMs: 1_000, process: host() })
    let closes = 0
    lifecycle.onStop('door', async () => void closes++)
    const first = lifecycle.stop('one')
    expect(lifecycle.stopping).toBe(true)
    expect(lifecycle.signal.aborted).toBe(true)
    expect(lifecycle.stop('two')).toBe(first)
    await first
    await lifecycle.stop('three')
    expect(closes).toBe(1)
  })

  it('closes what is registered after the stop was complete', async () => {
    const lifecycle = createLifecycle({ log: quiet, timeoutMs: 1_000, process: host() })
    await lifecycle.stop('done')
    const closed = new Promise<string>(resolve => {
      lifecycle.onStop('late', async () => resolve('closed'))
    })
    await expect(closed).resolves.toBe('closed')
  })

  it('keeps the code of a failure that came during an orderly stop', async () => {
    const process = host()
    const lifecycle = createLifecycle({ log: quiet, timeoutMs: 1_000, process })
    const stopping = lifecycle.stop('asked')
    lifecycle.fail(new Error('in the middle of it'))
    await stopping
    expect(process.codes.at(-1)).toBe(1)
  })
})
