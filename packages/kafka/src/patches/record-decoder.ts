// Replaces kafkajs `src/protocol/recordBatch/record/v0/decoder.js`. The original builds headers by spreading an object for each
// one and looks names up in it, so a header named `toString` or `constructor` comes out as a function, and order is lost.
// Here headers are the list they are on the wire.

interface BatchContext {
  readonly firstOffset: string
  readonly firstTimestamp: string
  readonly magicByte: number
  readonly isControlBatch: boolean
  readonly timestampType: number
  readonly maxTimestamp: string
}

const logAppendTime = 1

/** Reads the varints of one record. Position moves as it reads; reading past the end throws a RangeError. */
class RecordReader {
  readonly #buffer: Buffer
  #position: number

  constructor(buffer: Buffer, position: number) {
    this.#buffer = buffer
    this.#position = position
  }

  int8(): number {
    return this.#buffer.readInt8(this.#position++)
  }

  /** Zig-zag varint or varlong; exact up to 2^53. */
  varint(): number {
    let value = 0
    let scale = 1
    for (;;) {
      const byte = this.#buffer.readUInt8(this.#position++)
      value += (byte & 0x7f) * scale
      if (byte < 0x80) break
      scale *= 128
    }
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2
  }

  bytes(): Buffer | null {
    const length = this.varint()
    if (length < 0) return null
    const end = this.#position + length
    if (end > this.#buffer.length) throw new RangeError(`record field of ${length} bytes ends outside its record`)
    const bytes = this.#buffer.subarray(this.#position, end)
    this.#position = end
    return bytes
  }
}

export function decodeRecord(
  decoder: { readonly buffer: Buffer; readonly offset: number },
  batchContext: BatchContext,
) {
  const reader = new RecordReader(decoder.buffer, decoder.offset)
  const attributes = reader.int8()
  const timestampDelta = reader.varint()
  const offset = Number(batchContext.firstOffset) + reader.varint()
  const key = reader.bytes()
  const value = reader.bytes()
  const headers: [string, Buffer][] = []
  for (let left = reader.varint(); left > 0; left--) {
    const name = reader.bytes()?.toString('utf8') ?? ''
    headers.push([name, reader.bytes() ?? Buffer.alloc(0)])
  }
  const timestamp =
    batchContext.timestampType === logAppendTime
      ? batchContext.maxTimestamp
      : String(Number(batchContext.firstTimestamp) + timestampDelta)
  return {
    magicByte: batchContext.magicByte,
    attributes,
    timestamp,
    offset: String(offset),
    key,
    value,
    headers,
    isControlRecord: batchContext.isControlBatch,
    batchContext,
  }
}
