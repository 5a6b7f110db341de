// The bytes members of a group exchange, in the consumer protocol's own layout so that Kafka's tools can read them; what is ours
// stands in `userData`.
import type { MemberClaim } from './number-assignor.ts'

export const protocolName = 'weir-numbers'
const protocolVersion = 0

class ByteWriter {
  readonly #chunks: Buffer[] = []

  int16(value: number): this {
    const bytes = Buffer.allocUnsafe(2)
    bytes.writeInt16BE(value)
    this.#chunks.push(bytes)
    return this
  }

  int32(value: number): this {
    const bytes = Buffer.allocUnsafe(4)
    bytes.writeInt32BE(value)
    this.#chunks.push(bytes)
    return this
  }

  string(value: string): this {
    const bytes = Buffer.from(value, 'utf8')
    this.int16(bytes.length).#chunks.push(bytes)
    return this
  }

  bytes(value: Buffer): this {
    this.int32(value.length).#chunks.push(value)
    return this
  }

  int32s(values: readonly number[]): this {
    this.int32(values.length)
    for (const value of values) this.int32(value)
    return this
  }

  finish(): Buffer {
    return Buffer.concat(this.#chunks)
  }
}

class ByteReader {
  readonly #bytes: Buffer
  #position = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  int16(): number {
    const value = this.#bytes.readInt16BE(this.#position)
    this.#position += 2
    return value
  }

  int32(): number {
    const value = this.#bytes.readInt32BE(this.#position)
    this.#position += 4
    return value
  }

  string(): string {
    return this.#take(this.int16()).toString('utf8')
  }

  bytes(): Buffer {
    return this.#take(this.int32())
  }

  int32s(): number[] {
    const count = this.int32()
    const values: number[] = []
    for (let i = 0; i < count; i++) values.push(this.int32())
    return values
  }

  #take(length: number): Buffer {
    const taken = this.#bytes.subarray(this.#position, this.#position + Math.max(length, 0))
    this.#position += Math.max(length, 0)
    return taken
  }
}

/** What a member tells when it joins: its topics, and what it owned until now. */
export function encodeSubscription(topics: readonly string[], owned: Omit<MemberClaim, 'memberId'>): Buffer {
  const userData = new ByteWriter().int32(owned.generation).int32s(owned.numbers).finish()
  const writer = new ByteWriter().int16(protocolVersion).int32(topics.length)
  for (const topic of topics) writer.string(topic)
  return writer.bytes(userData).finish()
}

export function decodeSubscription(memberId: string, bytes: Buffer): MemberClaim & { readonly topics: string[] } {
  const reader = new ByteReader(bytes)
  reader.int16() // version
  const topics: string[] = []
  for (let left = reader.int32(); left > 0; left--) topics.push(reader.string())
  const userData = reader.bytes()
  if (userData.length === 0) return { memberId, topics, numbers: [], generation: -1 }
  const owned = new ByteReader(userData)
  return { memberId, topics, generation: owned.int32(), numbers: owned.int32s() }
}

/** What the leader gives a member: its numbers, and for the tools the partitions they stand for. */
export function encodeAssignment(numbers: readonly number[], partitionCounts: ReadonlyMap<string, number>): Buffer {
  const writer = new ByteWriter().int16(protocolVersion).int32(partitionCounts.size)
  for (const [topic, count] of partitionCounts) {
    writer.string(topic).int32s(numbers.filter(number => number < count))
  }
  return writer.bytes(new ByteWriter().int32s(numbers).finish()).finish()
}

/** The numbers of an assignment; none when the leader gave nothing. */
export function decodeAssignment(bytes: Buffer): number[] {
  if (bytes.length === 0) return []
  const reader = new ByteReader(bytes)
  reader.int16() // version
  for (let left = reader.int32(); left > 0; left--) {
    reader.string()
    reader.int32s()
  }
  const userData = reader.bytes()
  return userData.length === 0 ? [] : new ByteReader(userData).int32s()
}
