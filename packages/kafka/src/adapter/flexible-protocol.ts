// Kafka's "flexible" encoding (KIP-482) for the two requests kafkajs does not have in the version we need: compact strings and
// arrays (length + 1 as unsigned varint), and tagged fields behind every structure, of which we send and keep none.
import { formatUuid } from '@weir/core'

export class FlexibleWriter {
  readonly #chunks: Buffer[] = []

  #int(bytes: number, value: number): this {
    const buffer = Buffer.allocUnsafe(bytes)
    buffer.writeIntBE(value, 0, bytes)
    this.#chunks.push(buffer)
    return this
  }

  boolean(value: boolean): this {
    return this.#int(1, value ? 1 : 0)
  }

  int32(value: number): this {
    return this.#int(4, value)
  }

  raw(bytes: Buffer): this {
    this.#chunks.push(bytes)
    return this
  }

  varint(value: number): this {
    const bytes: number[] = []
    let rest = value
    for (; rest > 0x7f; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128)
    bytes.push(rest)
    return this.raw(Buffer.from(bytes))
  }

  string(value: string): this {
    const bytes = Buffer.from(value, 'utf8')
    return this.varint(bytes.length + 1).raw(bytes)
  }

  array<T>(values: readonly T[], write: (value: T) => void): this {
    this.varint(values.length + 1)
    for (const value of values) write(value)
    return this
  }

  noTags(): this {
    return this.varint(0)
  }

  /** In the shape of kafkajs' Encoder. */
  finish(): { readonly buf: Buffer; readonly buffer: Buffer; size(): number } {
    const bytes = Buffer.concat(this.#chunks)
    return { buf: bytes, buffer: bytes, size: () => bytes.length }
  }
}

export class FlexibleReader {
  readonly #bytes: Buffer
  #position = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  boolean(): boolean {
    return this.#bytes.readInt8(this.#position++) !== 0
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

  int64(): number {
    const value = Number(this.#bytes.readBigInt64BE(this.#position))
    this.#position += 8
    return value
  }

  uuid(): string {
    const text = formatUuid(this.#bytes.subarray(this.#position, this.#position + 16))
    this.#position += 16
    return text
  }

  varint(): number {
    let value = 0
    for (let scale = 1; ; scale *= 128) {
      const byte = this.#bytes.readUInt8(this.#position++)
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value
    }
  }

  string(): string | null {
    const length = this.varint() - 1
    if (length < 0) return null
    const text = this.#bytes.toString('utf8', this.#position, this.#position + length)
    this.#position += length
    return text
  }

  array<T>(read: () => T): T[] {
    const count = this.varint() - 1
    const values: T[] = []
    for (let i = 0; i < count; i++) values.push(read())
    return values
  }

  skipTags(): void {
    for (let left = this.varint(); left > 0; left--) {
      this.varint()
      const sizeBytes = this.varint()
      this.#position += sizeBytes
    }
  }
}
