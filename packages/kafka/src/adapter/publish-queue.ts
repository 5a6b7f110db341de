// What waits to be published, per partition and in order.
import type { OutRecord } from '@weir/core'
import { batchOverheadBytes } from './record-size.ts'
import { maxRequestBytes, maxSliceRecords, sliceKey, type Slice } from './send-plan.ts'

/** One record on its way, and whom to tell. */
export interface Entry {
  readonly record: OutRecord
  readonly bytes: number
  readonly maxBatchBytes: number
  /** `performance.now()` when it is given up. */
  readonly deadlineMs: number
  readonly acked: (offset: number) => void
  readonly failed: (error: Error) => void
}

/** A slice with its entries, in the same order as its records. */
export interface EntrySlice extends Slice {
  readonly entries: Entry[]
}

export class PublishQueue {
  readonly #waiting = new Map<string, Entry[]>()
  /** Partitions whose next slice must hold no more than this many records, because a larger one was refused. */
  readonly #sliceLimits = new Map<string, number>()
  #records = 0

  get size(): number {
    return this.#records
  }

  add(entry: Entry): void {
    const key = sliceKey(entry.record)
    const entries = this.#waiting.get(key)
    if (entries) entries.push(entry)
    else this.#waiting.set(key, [entry])
    this.#records++
  }

  /** Entries that were not stored go back to the head of their partition. */
  putBack(slice: EntrySlice): void {
    const key = sliceKey(slice)
    this.#waiting.set(key, [...slice.entries, ...(this.#waiting.get(key) ?? [])])
    this.#records += slice.entries.length
  }

  /** From now on this partition goes alone, at most so many records at a time. */
  limit(slice: EntrySlice, records: number): void {
    this.#sliceLimits.set(sliceKey(slice), Math.max(1, records))
  }

  /** The partition takes slices of any size again. */
  unlimit(slice: EntrySlice): void {
    this.#sliceLimits.delete(sliceKey(slice))
  }

  isLimited(): boolean {
    return this.#sliceLimits.size > 0
  }

  /** The next request: the head of each partition, the partitions that waited longest first; `single` takes one partition only. */
  take(single: boolean): EntrySlice[] {
    const request: EntrySlice[] = []
    let requestBytes = 0
    // A copy: a partition put behind the others must not come up again in this request.
    const waiting = [...this.#waiting]
    for (const [key, entries] of waiting) {
      const slice = this.#slice(key, entries, maxRequestBytes - requestBytes)
      if (!slice) break
      request.push(slice)
      requestBytes += slice.bytes
      const rest = entries.slice(slice.entries.length)
      // Deleting and setting again moves the partition behind those that were not served.
      this.#waiting.delete(key)
      if (rest.length > 0) this.#waiting.set(key, rest)
      this.#records -= slice.entries.length
      if (single) break
    }
    return request
  }

  #slice(key: string, entries: readonly Entry[], roomBytes: number): EntrySlice | null {
    const [first] = entries
    if (!first) return null
    const limit = this.#sliceLimits.get(key) ?? maxSliceRecords
    let bytes = batchOverheadBytes
    let count = 0
    for (const entry of entries) {
      const next = bytes + entry.bytes
      const tooLarge = next > first.maxBatchBytes || next > Math.max(roomBytes, 0)
      if (count >= limit || (tooLarge && (count > 0 || roomBytes < maxRequestBytes))) break
      bytes = next
      count++
    }
    if (count === 0) return null
    const taken = entries.slice(0, count)
    const { topic, partition } = first.record
    return { topic, partition, records: taken.map(({ record }) => record), entries: taken, bytes }
  }
}
