// One partition of a simulated log: records, transaction markers, and what a read-committed reader may see of them.
import type { Fetched, LogRecord, OutRecord } from '@weir/core'
import { Sequences } from './sequences.ts'

/** Records outside transactions have none. */
export type TransactionKey = string

interface Entry {
  readonly offset: number
  readonly transaction: TransactionKey | null
  /** Null for the marker that ends a transaction. */
  readonly record: LogRecord | null
}

export class PartitionLog {
  /** What it remembers of idempotent producers. */
  readonly sequences = new Sequences()
  readonly #topic: string
  readonly #partition: number
  #entries: Entry[] = []
  #startOffset = 0
  #endOffset = 0
  /** First offsets of transactions without an outcome. */
  readonly #open = new Map<TransactionKey, number>()
  readonly #aborted = new Set<TransactionKey>()
  readonly #waiting = new Set<() => void>()

  constructor(topic: string, partition: number) {
    this.#topic = topic
    this.#partition = partition
  }

  get startOffset(): number {
    return this.#startOffset
  }

  get endOffset(): number {
    return this.#endOffset
  }

  get lastStableOffset(): number {
    return Math.min(this.#endOffset, ...this.#open.values())
  }

  /** Offset of the last record that a read-committed reader may still see, -1 when there is none: markers do not count. */
  get lastRecordOffset(): number {
    const last = this.#entries.findLast(
      ({ record, transaction }) => record !== null && (transaction === null || !this.#aborted.has(transaction)),
    )
    return last?.offset ?? -1
  }

  append(record: OutRecord, timestampMs: number, transaction: TransactionKey | null): number {
    const offset = this.#endOffset++
    if (transaction !== null && !this.#open.has(transaction)) this.#open.set(transaction, offset)
    const { key, value, headers } = record
    const stored = { topic: this.#topic, partition: this.#partition, offset, timestampMs, key, value, headers }
    this.#entries.push({ offset, transaction, record: stored })
    if (transaction === null) this.#wake()
    return offset
  }

  /** Writes the marker; nothing happens when the transaction wrote nothing here. */
  end(transaction: TransactionKey, outcome: 'commit' | 'abort'): void {
    if (!this.#open.delete(transaction)) return
    if (outcome === 'abort') this.#aborted.add(transaction)
    this.#entries.push({ offset: this.#endOffset++, transaction, record: null })
    this.#wake()
  }

  /** Retention: what lies below `offset` is gone. */
  removeBelow(offset: number): void {
    this.#startOffset = Math.min(Math.max(this.#startOffset, offset), this.#endOffset)
    this.#entries = this.#entries.filter(entry => entry.offset >= this.#startOffset)
  }

  /** An unclean election or a restored disk: what lies at and above `offset` is gone. */
  removeFrom(offset: number): void {
    this.#endOffset = Math.max(this.#startOffset, Math.min(offset, this.#endOffset))
    this.#entries = this.#entries.filter(entry => entry.offset < this.#endOffset)
    for (const [transaction, first] of this.#open) if (first >= this.#endOffset) this.#open.delete(transaction)
  }

  /** Compaction: keeps the last value of each key below the end, and offsets as they are. */
  compact(): void {
    const last = new Map<string, number>()
    for (const { record } of this.#entries) if (record?.key) last.set(record.key.toString('hex'), record.offset)
    this.#entries = this.#entries.filter(
      ({ record }) => !record?.key || last.get(record.key.toString('hex')) === record.offset,
    )
  }

  /** Every record with its offset, aborted and open ones too, and whether a read-committed reader sees it: a log scan. */
  scan(): readonly { readonly record: LogRecord; readonly state: 'committed' | 'open' | 'aborted' }[] {
    return this.#entries.flatMap(({ record, transaction }) => {
      if (record === null) return []
      if (transaction === null) return [{ record, state: 'committed' as const }]
      const state = this.#aborted.has(transaction) ? 'aborted' : this.#open.has(transaction) ? 'open' : 'committed'
      return [{ record, state }]
    })
  }

  isReadable(fromOffset: number): boolean {
    return fromOffset >= this.#startOffset && fromOffset <= this.#endOffset
  }

  read(fromOffset: number, maxBytes: number): Fetched {
    const lastStableOffset = this.lastStableOffset
    const records: LogRecord[] = []
    let bytes = 0
    // With nothing left behind, the whole stretch is read, gaps of compaction included.
    let nextOffset = Math.max(fromOffset, lastStableOffset)
    for (const { offset, transaction, record } of this.#entries) {
      if (offset < fromOffset) continue
      if (offset >= lastStableOffset) break
      if (!record || (transaction !== null && this.#aborted.has(transaction))) continue
      const size = (record.key?.length ?? 0) + (record.value?.length ?? 0)
      if (records.length > 0 && bytes + size > maxBytes) {
        nextOffset = offset
        break
      }
      bytes += size
      records.push(record)
    }
    return {
      records,
      startOffset: fromOffset,
      nextOffset,
      logStartOffset: this.#startOffset,
      lastStableOffset,
      highWatermark: this.#endOffset,
    }
  }

  offsetAt(timestampMs: number): number {
    return this.#entries.find(({ record }) => record && record.timestampMs >= timestampMs)?.offset ?? this.#endOffset
  }

  /** Calls once when there may be more to read; returns how to stop waiting. */
  onChange(wake: () => void): () => void {
    this.#waiting.add(wake)
    return () => void this.#waiting.delete(wake)
  }

  #wake(): void {
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const wake of waiting) wake()
  }
}
