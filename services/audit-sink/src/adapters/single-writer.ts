import type { Broker, Log, Membership } from '@weir/core'

/** The one partition of `weir.control` decides which instance writes: its owner runs, the others wait. */
export class SingleWriter {
  readonly #run: (signal: AbortSignal) => Promise<void>
  #membership: Membership | null = null
  #turn: { readonly abort: AbortController; readonly done: Promise<void> } | null = null
  /** The turn before: it may still be ending when the next one begins, and two must not run at once. */
  #ending: Promise<void> = Promise.resolve()
  #lost: string | null = null
  #joined = false

  constructor(run: (signal: AbortSignal) => Promise<void>) {
    this.#run = run
  }

  async join(options: {
    readonly broker: Broker
    readonly group: string
    readonly topic: string
    readonly sessionTimeoutMs: number
    readonly log: Log
  }): Promise<void> {
    const { broker, group, topic, sessionTimeoutMs, log } = options
    this.#membership = await broker.join({
      group,
      topics: [topic],
      sessionTimeoutMs,
      onAssigned: ({ numbers }) => {
        this.#joined = true
        if (numbers.includes(0)) this.#begin()
        else this.#end()
      },
      onLost: cause => {
        this.#lost = 'no longer a member of its group'
        log.error({ err: cause, group }, 'this instance has lost its place in the group for good')
        this.#end()
      },
    })
  }

  live(): string | null {
    return this.#lost
  }

  ready(): string | null {
    return this.#joined ? null : 'waiting for the first assignment'
  }

  get writes(): boolean {
    return this.#turn !== null
  }

  async stop(): Promise<void> {
    this.#end()
    await this.#ending
    await this.#membership?.leave()
  }

  #begin(): void {
    if (this.#turn !== null) return
    const abort = new AbortController()
    this.#turn = { abort, done: this.#ending.then(async () => await this.#run(abort.signal)) }
  }

  #end(): void {
    if (this.#turn === null) return
    this.#turn.abort.abort()
    this.#ending = this.#turn.done
    this.#turn = null
  }
}
