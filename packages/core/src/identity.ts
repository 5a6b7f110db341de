import { createHash } from 'node:crypto'

declare const brand: unique symbol
type Branded<T, Name extends string> = T & { readonly [brand]: Name }

/** SHA-256 of the length-prefixed (tenant, source, event id). */
export type EventKey = Branded<Buffer, 'EventKey'>
/** UUIDv5: the idempotency key of everything an agent does with an event. */
export type DecisionId = Branded<string, 'DecisionId'>

/** Longest readable key kept beside its hash, bytes. */
export const maxKeyTextBytes = 512

/** Parts joined so that no two different lists give the same bytes: each part is prefixed by its length, 4 bytes big-endian. */
export function lengthPrefixed(parts: readonly (string | Buffer)[]): Buffer {
  const chunks: Buffer[] = []
  for (const part of parts) {
    const bytes = typeof part === 'string' ? Buffer.from(part, 'utf8') : part
    const length = Buffer.allocUnsafe(4)
    length.writeUInt32BE(bytes.length)
    chunks.push(length, bytes)
  }
  return Buffer.concat(chunks)
}

export function sha256(bytes: Buffer | string): Buffer {
  return createHash('sha256').update(bytes).digest()
}

export function eventKey(tenant: string, source: string, eventId: string): EventKey {
  return sha256(lengthPrefixed([tenant, source, eventId])) as EventKey
}

/** Readable form of an event key; for people and as ordering key, never for comparing keys. */
export function eventKeyText(tenant: string, source: string, eventId: string): string {
  return keyText([tenant, source, eventId])
}

/** Ordering key of an event with an object: events of one object of one tenant keep their order. Without an object it is the event key text. */
export function orderingKeyText(tenant: string, object: string): string {
  return keyText([tenant, object])
}

/** `/`, `%` and control characters are percent-escaped in each part, so that the text is unambiguous; cut to 512 bytes with the hash's head as suffix. */
export function keyText(parts: readonly string[]): string {
  const text = parts.map(escapePart).join('/')
  if (Buffer.byteLength(text) <= maxKeyTextBytes) return text
  const suffix = `~${sha256(lengthPrefixed(parts)).toString('hex').slice(0, 16)}`
  return cutUtf8(text, maxKeyTextBytes - suffix.length) + suffix
}

function escapePart(part: string): string {
  // oxlint-disable-next-line no-control-regex -- control characters are what is escaped
  return part.replace(/[%/\u0000-\u001f\u007f]/g, c => `%${c.charCodeAt(0).toString(16).padStart(2, '0')}`)
}

/** The longest prefix of whole characters within `maxBytes` of UTF-8. */
export function cutUtf8(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text, 'utf8')
  if (bytes.length <= maxBytes) return text
  let end = maxBytes
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end)
}

/** RFC 9562 UUIDv5 in Weir's own namespace over length-prefixed parts. */
export function uuidV5(parts: readonly (string | Buffer)[]): string {
  const digest = createHash('sha1').update(weirNamespace).update(lengthPrefixed(parts)).digest()
  digest[6] = ((digest[6] ?? 0) & 0x0f) | 0x50
  digest[8] = ((digest[8] ?? 0) & 0x3f) | 0x80
  return formatUuid(digest)
}

const weirNamespace = Buffer.from('7d1a8b1e5f5c4c0f9d0b6a2f3c4e5d60', 'hex')

export function formatUuid(bytes: Buffer): string {
  const hex = bytes.toString('hex', 0, 16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** UUIDv5 of (event key, admission id, agent, stage); dedup decides for no agent: empty text. */
export function decisionId(key: Buffer, admissionId: string, agent: string, stage: 'dedup' | 'policy'): DecisionId {
  return uuidV5([key, admissionId, agent, stage]) as DecisionId
}

/** RFC 9562 UUIDv7 from a clock reading and 10 random bytes (the caller's: this package has neither). */
export function uuidV7(nowMs: number, random: Buffer): string {
  const bytes = Buffer.alloc(16)
  bytes.writeUIntBE(nowMs, 0, 6)
  random.copy(bytes, 6, 0, 10)
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x70
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  return formatUuid(bytes)
}

/** Partition of an ordering key: murmur2 as Kafka's Java client has it, modulo the partition count. */
export function partitionOf(orderingKey: string | Buffer, partitions: number): number {
  const bytes = typeof orderingKey === 'string' ? Buffer.from(orderingKey, 'utf8') : orderingKey
  return (murmur2(bytes) & 0x7fffffff) % partitions
}

/** 32-bit murmur2 with Kafka's seed. Exact: all products are taken with Math.imul. */
export function murmur2(data: Buffer): number {
  const m = 0x5bd1e995
  const length = data.length
  let h = 0x9747b28c ^ length
  const whole = length - (length % 4)
  for (let i = 0; i < whole; i += 4) {
    let k = Math.imul(data.readInt32LE(i), m)
    k = Math.imul(k ^ (k >>> 24), m)
    h = Math.imul(h, m) ^ k
  }
  const rest = length - whole
  if (rest === 3) h ^= (data[whole + 2] ?? 0) << 16
  if (rest >= 2) h ^= (data[whole + 1] ?? 0) << 8
  if (rest >= 1) h = Math.imul(h ^ (data[whole] ?? 0), m)
  h = Math.imul(h ^ (h >>> 13), m)
  return h ^ (h >>> 15)
}
