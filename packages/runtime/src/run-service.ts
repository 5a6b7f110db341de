import { type Clock, errorCatalogue, type Log, WeirError } from '@weir/core'
import { systemClock } from './clock.ts'
import { readProcessSettings } from './config.ts'
import { createLifecycle, type Lifecycle } from './lifecycle.ts'
import { createLog } from './log.ts'
import { createMetrics, type Metrics } from './metrics.ts'
import { hideUrlPasswords } from './redaction.ts'

/** What every service starts with. */
export interface ServiceContext {
  readonly name: string
  readonly env: NodeJS.ProcessEnv
  readonly log: Log
  readonly metrics: Metrics
  readonly lifecycle: Lifecycle
  readonly clock: Clock
}

/**
 * Runs a service's `main`, which resolves when the service is started. An error at start, bad settings included, prints one
 * plain message on standard error and ends the process with code 1, after closing what was opened. An error nobody caught later
 * is fatal: logged, then an orderly stop with code 1.
 */
export function runService(name: string, main: (context: ServiceContext) => Promise<void>): void {
  let context: ServiceContext
  try {
    context = createContext(name)
  } catch (error) {
    printStartError(name, error)
    process.exitCode = 1
    return
  }
  const { lifecycle } = context
  process.on('uncaughtException', error => lifecycle.fail(error))
  process.on('unhandledRejection', error => lifecycle.fail(error))
  const started = start(context, main)
  // Registered first, so it closes last: a stop during start waits for the start to end and then closes what it opened.
  lifecycle.onStop('start', async () => await started)
}

function createContext(name: string): ServiceContext {
  const { env, settings } = readProcessSettings()
  const log = createLog({ service: name, level: settings.WEIR_LOG_LEVEL })
  const lifecycle = createLifecycle({ log, timeoutMs: settings.WEIR_SHUTDOWN_TIMEOUT_MS })
  return { name, env, log, metrics: createMetrics(name, { processMetrics: true }), lifecycle, clock: systemClock }
}

/** Never rejects. */
async function start(context: ServiceContext, main: (context: ServiceContext) => Promise<void>): Promise<void> {
  const { name, log, lifecycle } = context
  // A start that waits for nothing would otherwise end the process silently, with code 0.
  const alive = setInterval(() => {}, 60_000)
  // A macrotask first, so that the closer of the start itself is registered before anything main opens.
  await new Promise<void>(resolve => {
    setImmediate(resolve)
  })
  try {
    await main(context)
    if (!lifecycle.stopping) log.info({}, 'started')
  } catch (error) {
    if (lifecycle.stopping) {
      log.info({ err: error }, 'start given up')
      return
    }
    printStartError(name, error)
    void lifecycle.stop('start failed', 1)
  } finally {
    clearInterval(alive)
  }
}

function printStartError(name: string, error: unknown): void {
  process.stderr.write(`${startErrorText(name, error)}\n`)
}

/** What a person reads when a service does not start: the message, the code and what to do; the stack only for a bug. */
export function startErrorText(name: string, error: unknown): string {
  if (!(error instanceof WeirError)) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    return hideUrlPasswords(`${name}: cannot start: ${text}`)
  }
  return hideUrlPasswords(
    `${name}: cannot start: ${error.message} [${error.code}] ${errorCatalogue[error.code].remedy}`,
  )
}
