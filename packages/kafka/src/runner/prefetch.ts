import type { Fetched, LogReader, LogRecord } from '@weir/core'

/** A bounded piece of a fetch, ready to be claimed. `nextOffset` is what to commit once it is done. */
export interface Slice {
  readonly records: readonly LogRecord[]
  readonly nextOffset: number
  readonly endOffset: number
}

/** Keeps one fetch of one input ahead of the serial loop: while a batch is claimed, the next one is on its way. */
export class Prefetch {
  readonly #reader: LogReader
  readonly #request: { readonly topic: string; readonly partition: number; readonly maxBytes: number }
  #fromOffset: number
  #fetched: Fetched | null = null
  #failure: Error | null = null
  #used = 0
  #pending: Promise<void> | null = null
  #isAtEnd = false

  constructor(
    reader: LogReader,
    request: { readonly topic: string; readonly partition: number; readonly maxBytes: number },
    fromOffset: number,
  ) {
    this.#reader = reader
    this.#request = request
    this.#fromOffset = fromOffset
  }

  get topic(): string {
    return this.#request.topic
  }

  /** The last fetch was answered, and there was nothing. */
  get isAtEnd(): boolean {
    return this.#isAtEnd
  }

  /** Resolves when `take` would give something or throw. */
  ready(): Promise<void> {
    if (this.#fetched !== null || this.#failure !== null) return Promise.resolve()
    this.#pending ??= this.#fetch()
    return this.#pending
  }

  /** At most `limit` records; null when nothing is there yet. Throws what the fetch threw. */
  take(limit: number): Slice | null {
    if (this.#failure !== null) throw this.#failure
    const fetched = this.#fetched
    if (fetched === null) return null
    const records = fetched.records.slice(this.#used, this.#used + limit)
    this.#used += records.length
    const last = records.at(-1)
    const isLast = this.#used >= fetched.records.length
    const nextOffset = isLast || last === undefined ? fetched.nextOffset : last.offset + 1
    if (isLast) {
      this.#fetched = null
      this.#used = 0
      void this.ready()
    }
    return { records, nextOffset, endOffset: fetched.highWatermark }
  }

  async #fetch(): Promise<void> {
    try {
      const fetched = await this.#reader.fetch({ ...this.#request, fromOffset: this.#fromOffset, maxWaitMs: 250 })
      this.#fromOffset = fetched.nextOffset
      this.#isAtEnd = fetched.records.length === 0 && fetched.nextOffset === fetched.startOffset
      if (!this.#isAtEnd) this.#fetched = fetched
    } catch (error) {
      this.#failure = error instanceof Error ? error : new Error(String(error))
    } finally {
      this.#pending = null
    }
  }
}
