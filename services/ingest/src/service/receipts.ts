import { WeirError, type Clock, type Log } from '@weir/core'
import type { Receipt } from '@weir/schemas'
import type { IngestMetrics } from '../metrics.ts'
import type { ReceiptLog } from '../ports.ts'

/** What an answer is recorded as; the book adds id, time and count. */
export type ReceiptDraft = Omit<Receipt, 'count' | 'atMs'>

export interface ReceiptBookOptions {
  readonly log: ReceiptLog
  readonly clock: Clock
  readonly metrics: IngestMetrics
  readonly logger: Log
  /** How long receipts are collected before they are written, milliseconds. */
  readonly flushMs: number
  /** Receipts waiting at most; what comes beyond it is counted as dropped. */
  readonly maxWaiting: number
}

const firstRetryMs = 100
const maxRetryMs = 5_000
const maxPerWrite = 1_000

/**
 * Writes a receipt for every answer without making the answer wait. Equal answers about one key within a flush share a receipt
 * that counts them: in a storm receipts do not multiply.
 */
export class ReceiptBook {
  readonly #options: ReceiptBookOptions
  #waiting = new Map<string, Receipt>()
  #timer: NodeJS.Timeout | null = null
  #writing: Promise<void> | null = null
  #isClosed = false
  #isDropping = false

  constructor(options: ReceiptBookOptions) {
    this.#options = options
  }

  note(draft: ReceiptDraft): void {
    const { clock, metrics, maxWaiting, flushMs } = this.#options
    // Names that a sender makes up do not tell answers apart, or each would get a receipt of its own.
    const about = draft.eventKey?.toString('latin1') ?? (draft.tenant === null ? '' : draft.source)
    const answer = [
      about,
      draft.outcome,
      draft.reason,
      draft.status,
      draft.originalDeliveryId ?? draft.deliveryId ?? '',
    ]
    const group = answer.join('\u0000')
    const known = this.#waiting.get(group)
    if (known !== undefined) {
      this.#waiting.set(group, { ...known, count: known.count + 1 })
      metrics.receiptsCounted.inc({})
      return
    }
    if (this.#waiting.size >= maxWaiting || this.#isClosed) {
      this.#dropped(1, 'too many receipts wait for Kafka')
      return
    }
    this.#waiting.set(group, { ...draft, atMs: clock.nowMs(), count: 1 })
    metrics.receiptsQueued.set({}, this.#waiting.size)
    this.#timer ??= setTimeout(() => this.#flush(), flushMs)
  }

  /** Writes what is waiting; gives up after `withinMs`, counting what is lost. */
  async close(withinMs: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise<void>(resolve => {
      timer = setTimeout(() => {
        this.#isClosed = true
        resolve()
      }, withinMs)
    })
    this.#flush()
    await Promise.race([this.#drained(), timeout])
    clearTimeout(timer)
    this.#isClosed = true
    if (this.#waiting.size > 0) this.#dropped(this.#waiting.size, 'the process stops')
  }

  /** Never silently: counted, and an error in the log when it begins. */
  #dropped(receipts: number, why: string): void {
    const { metrics, logger } = this.#options
    metrics.receiptsDropped.inc({}, receipts)
    if (!this.#isDropping) logger.error({ receipts, why }, 'receipts are dropped')
    this.#isDropping = true
  }

  async #drained(): Promise<void> {
    while (this.#writing !== null) await this.#writing
  }

  #flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#writing ??= this.#write().finally(() => {
      this.#writing = null
      if (this.#waiting.size > 0 && !this.#isClosed)
        this.#timer ??= setTimeout(() => this.#flush(), this.#options.flushMs)
    })
  }

  /** Never rejects: receipts stay until they are written, or the book is closed. */
  async #write(): Promise<void> {
    const { log, metrics, logger } = this.#options
    let retryMs = firstRetryMs
    while (this.#waiting.size > 0 && !this.#isClosed) {
      const batch = [...this.#waiting].slice(0, maxPerWrite)
      try {
        await log.append(batch.map(([, receipt]) => receipt))
      } catch (error) {
        metrics.receiptFailures.inc({ code: error instanceof WeirError ? error.code : 'internal' })
        if (!(error instanceof WeirError) || !error.retriable) {
          // No later try can write these; the others must not wait for them.
          logger.error({ err: error, receipts: batch.length }, 'receipts cannot be written')
          for (const [group, refused] of batch) this.#remove(group, refused)
          this.#dropped(batch.length, 'they cannot be written')
          continue
        }
        if (retryMs === firstRetryMs) logger.warn({ err: error }, 'receipts could not be written; they wait')
        await new Promise<void>(resolve => {
          setTimeout(resolve, retryMs)
        })
        retryMs = Math.min(retryMs * 2, maxRetryMs)
        continue
      }
      retryMs = firstRetryMs
      this.#isDropping = false
      for (const [group, written] of batch) this.#remove(group, written)
      metrics.receiptsQueued.set({}, this.#waiting.size)
    }
  }

  /** What was counted while the write was under way stays, as a receipt of its own. */
  #remove(group: string, written: Receipt): void {
    const now = this.#waiting.get(group)
    if (now === undefined || now.count === written.count) this.#waiting.delete(group)
    else this.#waiting.set(group, { ...now, count: now.count - written.count })
  }
}
