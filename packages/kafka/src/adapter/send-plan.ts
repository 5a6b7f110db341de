// Cuts records into requests the broker takes: kafkajs makes one record batch per partition and request, the broker limits a
// batch, and kafkajs' grouping is quadratic in the records of a partition.
import type { OutRecord } from '@weir/core'
import type { Message, TopicMessages } from 'kafkajs'
import { batchOverheadBytes, recordBytes, toMessage } from './record-size.ts'

export const maxSliceRecords = 1_000
/** A request must also stay far below the broker's socket.request.max.bytes (100 MiB). */
export const maxRequestBytes = 8 * 1_048_576

/** Records of one partition that go into one batch. */
export interface Slice {
  readonly topic: string
  readonly partition: number
  readonly records: OutRecord[]
  bytes: number
}

export function sliceKey(tp: { readonly topic: string; readonly partition: number }): string {
  return `${tp.topic}/${tp.partition}`
}

/** Requests in the order they must be sent; each holds a partition at most once, so order per partition is kept. */
export function planSends(records: readonly OutRecord[], maxBatchBytes: (topic: string) => number): Slice[][] {
  const rounds: Slice[][] = []
  const current = new Map<string, { slice: Slice; round: number; limit: number }>()
  for (const record of records) {
    const key = sliceKey(record)
    const bytes = recordBytes(record)
    const open = current.get(key)
    if (open && open.slice.records.length < maxSliceRecords && open.slice.bytes + bytes <= open.limit) {
      open.slice.records.push(record)
      open.slice.bytes += bytes
      continue
    }
    const round = open ? open.round + 1 : 0
    const slice = {
      topic: record.topic,
      partition: record.partition,
      records: [record],
      bytes: batchOverheadBytes + bytes,
    }
    current.set(key, { slice, round, limit: open?.limit ?? maxBatchBytes(record.topic) })
    const slices = rounds[round]
    if (slices) slices.push(slice)
    else rounds.push([slice])
  }
  return rounds.flatMap(splitRound)
}

function splitRound(slices: readonly Slice[]): Slice[][] {
  const requests: Slice[][] = []
  let bytes = maxRequestBytes
  for (const slice of slices) {
    if (bytes + slice.bytes > maxRequestBytes) {
      requests.push([])
      bytes = 0
    }
    requests.at(-1)?.push(slice)
    bytes += slice.bytes
  }
  return requests
}

/** One request in kafkajs' shape. */
export function toTopicMessages(request: readonly Slice[]): TopicMessages[] {
  const messages = new Map<string, Message[]>()
  for (const { topic, records } of request) {
    const list = messages.get(topic)
    if (list) for (const record of records) list.push(toMessage(record))
    else messages.set(topic, records.map(toMessage))
  }
  return [...messages].map(([topic, list]) => ({ topic, messages: list }))
}
