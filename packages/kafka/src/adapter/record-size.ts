import type { OutRecord } from '@weir/core'
import type { Message } from 'kafkajs'

/** Header of a record batch, bytes; the broker's limit counts it. */
export const batchOverheadBytes = 61
/** Attributes, timestamp delta 0, and an offset delta below 8,192. */
const fixedFieldBytes = 1 + 1 + 2

/** Size of a zig-zag varint of a length. */
function lengthBytes(length: number): number {
  if (length < 64) return 1
  if (length < 8_192) return 2
  if (length < 1_048_576) return 3
  return length < 134_217_728 ? 4 : 5
}

function fieldBytes(length: number): number {
  return lengthBytes(length) + length
}

/** Size of a record inside a batch, bytes: exact, or one byte too large for the first 64 records of a batch. */
export function recordBytes(record: OutRecord): number {
  let body = fixedFieldBytes + fieldBytes(record.key?.length ?? 0) + fieldBytes(record.value?.length ?? 0)
  body += lengthBytes(record.headers.length)
  for (const [name, value] of record.headers) body += fieldBytes(Buffer.byteLength(name)) + fieldBytes(value.length)
  return fieldBytes(body)
}

/** In kafkajs' shape, but for the headers: the patched encoder takes the list as it is. */
export function toMessage({ key, value, partition, headers }: OutRecord): Message {
  return { key, value, partition, headers: headers as unknown as NonNullable<Message['headers']> }
}
