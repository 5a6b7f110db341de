import { type Log, WeirError } from '@weir/core'

export interface Lifecycle {
  /** What to close on stop, in reverse order of these calls. `timeoutMs`: bound for this one; default: what is left of the whole. */
  onStop(name: string, close: () => Promise<void>, timeoutMs?: number): void
  /** Stops once, however often it is called, also during start: what is opened later is closed too. The highest exit code counts. */
  stop(reason: string, exitCode?: number): Promise<void>
  readonly stopping: boolean
  /** Aborted when a stop begins, so that a start in progress can give up. */
  readonly signal: AbortSignal
  /** An error that ends the process: logs it, stops in order, exit code 1. */
  fail(error: unknown): void
}

export interface LifecycleOptions {
  readonly log: Log
  /** Longest an orderly stop may take, milliseconds; then the process exits with code 1. */
  readonly timeoutMs: number
  /** The process to end and to take signals from. Default: this one. */
  readonly process?: HostProcess
}

/** What a lifecycle needs of a process. */
export interface HostProcess {
  on(signal: 'SIGTERM' | 'SIGINT', listener: (signal: 'SIGTERM' | 'SIGINT') => void): void
  exit(code: number): void
  setExitCode(code: number): void
}

/** After an orderly stop the process ends by itself; what still holds it after this long is cut off. */
const lingerMs = 1_000
const signalNumbers = { SIGINT: 2, SIGTERM: 15 } as const

interface Closer {
  readonly name: string
  readonly close: () => Promise<void>
  readonly timeoutMs: number | null
}

/** Listens for SIGTERM and SIGINT from this call on. A second signal exits at once with 128 + its number. */
export function createLifecycle(options: LifecycleOptions): Lifecycle {
  return new ProcessLifecycle(options)
}

class ProcessLifecycle implements Lifecycle {
  readonly #log: Log
  readonly #timeoutMs: number
  readonly #host: HostProcess
  readonly #closers: Closer[] = []
  readonly #abort = new AbortController()
  #stopped: Promise<void> | null = null
  #drained = false
  #deadlineMs = 0
  #exitCode = 0

  constructor(options: LifecycleOptions) {
    this.#log = options.log
    this.#timeoutMs = options.timeoutMs
    this.#host = options.process ?? thisProcess
    this.#host.on('SIGTERM', signal => this.#onSignal(signal))
    this.#host.on('SIGINT', signal => this.#onSignal(signal))
  }

  get stopping(): boolean {
    return this.#stopped !== null
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  onStop(name: string, close: () => Promise<void>, timeoutMs?: number): void {
    this.#closers.push({ name, close, timeoutMs: timeoutMs ?? null })
    if (this.#drained) void this.#closeAll()
  }

  stop(reason: string, exitCode = 0): Promise<void> {
    this.#exitCode = Math.max(this.#exitCode, exitCode)
    if (this.#stopped) {
      this.#host.setExitCode(this.#exitCode)
      return this.#stopped
    }
    this.#log.info({ reason, timeoutMs: this.#timeoutMs }, 'stopping')
    this.#stopped = this.#stopOnce()
    this.#abort.abort(new WeirError('temporarily_unavailable', `stopping: ${reason}`))
    return this.#stopped
  }

  fail(error: unknown): void {
    this.#log.error({ err: error }, 'failed, stopping')
    void this.stop('failure', 1)
  }

  #onSignal(signal: 'SIGTERM' | 'SIGINT'): void {
    if (!this.stopping) {
      void this.stop(signal)
      return
    }
    this.#log.warn({ signal }, 'second signal, exiting at once')
    this.#host.exit(128 + signalNumbers[signal])
  }

  async #stopOnce(): Promise<void> {
    this.#deadlineMs = Date.now() + this.#timeoutMs
    const deadline = setTimeout(() => {
      this.#log.error({ waitingFor: this.#closers.map(closer => closer.name) }, 'stop took too long, exiting')
      this.#host.exit(1)
    }, this.#timeoutMs)
    await this.#closeAll()
    clearTimeout(deadline)
    this.#log.info({ exitCode: this.#exitCode }, 'stopped')
    setTimeout(() => this.#host.exit(this.#exitCode), lingerMs).unref()
  }

  /** Never rejects: what does not close is logged, and the rest is closed all the same. */
  async #closeAll(): Promise<void> {
    this.#drained = false
    for (let closer = this.#closers.pop(); closer; closer = this.#closers.pop()) {
      const leftMs = Math.max(1, this.#deadlineMs - Date.now())
      const isClosed = await closeOne(closer, leftMs, this.#log)
      if (!isClosed) this.#exitCode = 1
    }
    this.#drained = true
    this.#host.setExitCode(this.#exitCode)
  }
}

/** Whether it closed in time and without error; both are logged, since the rest must close all the same. */
async function closeOne(closer: Closer, leftMs: number, log: Log): Promise<boolean> {
  const boundMs = Math.min(closer.timeoutMs ?? leftMs, leftMs)
  let timer: NodeJS.Timeout | undefined
  const timedOut = new Promise<'timed out'>(resolve => {
    timer = setTimeout(() => resolve('timed out'), boundMs)
  })
  try {
    const outcome = await Promise.race([closer.close().then(() => 'closed' as const), timedOut])
    if (outcome === 'closed') return true
    log.error({ what: closer.name, timeoutMs: boundMs }, 'close took too long')
  } catch (error) {
    log.error({ what: closer.name, err: error }, 'close failed')
  } finally {
    clearTimeout(timer)
  }
  return false
}

const thisProcess: HostProcess = {
  on: (signal, listener) => void process.on(signal, listener),
  exit: code => process.exit(code),
  setExitCode: code => {
    process.exitCode = code
  },
}
