import { WeirError } from '@weir/core'

/** Column types the encoder knows. */
export type CopyType = 'int2' | 'int4' | 'int8' | 'text' | 'bytea' | 'uuid' | 'bool' | 'date' | 'timestamptz' | 'jsonb'

export interface CopyColumn {
  readonly name: string
  readonly type: CopyType
}

/**
 * A value by column type: int2, int4: number; int8: number or bigint; text: string without NUL; bytea: Buffer; uuid: text or 16
 * bytes; bool: boolean; date: `YYYY-MM-DD`; timestamptz: Date or milliseconds since 1970; jsonb: JSON text. `null` is NULL.
 */
export type CopyValue = string | number | bigint | boolean | Buffer | Date | null

const signature = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1')
const trailer = Buffer.from([0xff, 0xff])
/** Days and milliseconds from 1970-01-01 to Postgres' epoch 2000-01-01. */
const epochDays = 10_957
const epochMs = 946_684_800_000
/** Values from this size on are passed on as they are instead of being copied into the chunk. */
const largeBytes = 16_384

/** Grows chunks of about `chunkBytes`; what it yields is the COPY stream, cut anywhere. */
export class CopyEncoder {
  readonly #columns: readonly CopyColumn[]
  readonly #chunkBytes: number
  #chunk: Buffer
  #length = 0
  #row = 0
  #column = 0
  #large: Buffer[] = []

  constructor(columns: readonly CopyColumn[], chunkBytes = 65_536) {
    this.#columns = columns
    this.#chunkBytes = chunkBytes
    this.#chunk = Buffer.allocUnsafe(chunkBytes)
  }

  /** All chunks of these rows. Throws `invalid_value` at the first value its column cannot hold. */
  *encode(rows: readonly (readonly CopyValue[])[]): Generator<Buffer, void, undefined> {
    this.#write(signature)
    for (const row of rows) {
      this.#encodeRow(row)
      this.#row++
      if (this.#large.length > 0) yield* this.#takeLarge()
      if (this.#length >= this.#chunkBytes / 2) yield this.#take()
    }
    this.#write(trailer)
    yield this.#take()
  }

  #encodeRow(row: readonly CopyValue[]): void {
    if (row.length !== this.#columns.length) {
      throw new WeirError(
        'invalid_value',
        `COPY row ${this.#row} has ${row.length} values for ${this.#columns.length} columns`,
      )
    }
    this.#reserve(2)
    this.#length = this.#chunk.writeInt16BE(row.length, this.#length)
    for (this.#column = 0; this.#column < row.length; this.#column++) {
      const value = row[this.#column]
      const column = this.#columns[this.#column]
      if (column === undefined) continue
      if (value === null) this.#int32(-1)
      else if (value === undefined) throw this.#fault('undefined')
      else writers[column.type](this.#sink, value)
    }
  }

  // One object for all rows: what the writers below may do.
  readonly #sink: Sink = {
    fixed: (bytes: number): { buffer: Buffer; at: number } => {
      this.#int32(bytes)
      this.#reserve(bytes)
      const at = this.#length
      this.#length += bytes
      return { buffer: this.#chunk, at }
    },
    bytes: (value: Buffer, version?: number) => this.#bytes(value, version),
    text: (value: string, version?: number) => this.#text(value, version),
    fault: (what: string) => this.#fault(what),
  }

  #bytes(value: Buffer, version?: number): void {
    this.#int32(value.length + (version === undefined ? 0 : 1))
    if (version !== undefined) this.#write(Buffer.from([version]))
    if (value.length < largeBytes) {
      this.#write(value)
      return
    }
    this.#large.push(this.#take(), value)
  }

  #text(value: string, version?: number): void {
    if (value.length >= largeBytes) {
      this.#bytes(Buffer.from(value, 'utf8'), version)
      return
    }
    const extra = version === undefined ? 0 : 1
    this.#reserve(4 + extra + value.length * 3)
    const start = this.#length + 4
    if (version !== undefined) this.#chunk[start] = version
    const written = this.#chunk.write(value, start + extra, 'utf8') + extra
    this.#chunk.writeInt32BE(written, this.#length)
    this.#length = start + written
  }

  #int32(value: number): void {
    this.#reserve(4)
    this.#length = this.#chunk.writeInt32BE(value, this.#length)
  }

  #write(bytes: Buffer): void {
    this.#reserve(bytes.length)
    bytes.copy(this.#chunk, this.#length)
    this.#length += bytes.length
  }

  #reserve(bytes: number): void {
    if (this.#length + bytes <= this.#chunk.length) return
    const grown = Buffer.allocUnsafe(Math.max(this.#chunk.length * 2, this.#length + bytes))
    this.#chunk.copy(grown, 0, 0, this.#length)
    this.#chunk = grown
  }

  #take(): Buffer {
    const taken = this.#chunk.subarray(0, this.#length)
    this.#chunk = Buffer.allocUnsafe(this.#chunkBytes)
    this.#length = 0
    return taken
  }

  *#takeLarge(): Generator<Buffer, void, undefined> {
    const large = this.#large
    this.#large = []
    for (const chunk of large) if (chunk.length > 0) yield chunk
  }

  #fault(what: string): WeirError {
    const column = this.#columns[this.#column]
    return new WeirError(
      'invalid_value',
      `COPY row ${this.#row}, column ${column?.name} (${column?.type}): cannot write ${what}`,
      { context: { row: this.#row, column: column?.name, type: column?.type } },
    )
  }
}

type Present = Exclude<CopyValue, null>

interface Sink {
  fixed(bytes: number): { buffer: Buffer; at: number }
  bytes(value: Buffer, version?: number): void
  text(value: string, version?: number): void
  fault(what: string): WeirError
}

function integer(sink: Sink, value: Present, limit: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= -limit && value < limit) return value
  throw sink.fault(`${describe(value)}: an integer of the type's range is needed`)
}

function describe(value: Present): string {
  if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean') return String(value)
  return value instanceof Buffer ? `${value.length} bytes` : `a ${typeof value}`
}

function uuidBytes(sink: Sink, value: Present): Buffer {
  if (Buffer.isBuffer(value) && value.length === 16) return value
  if (typeof value === 'string' && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(value)) {
    return Buffer.from(value.replaceAll('-', ''), 'hex')
  }
  throw sink.fault(`${describe(value)}: a UUID is needed`)
}

function storableText(sink: Sink, value: Present): string {
  if (typeof value !== 'string') throw sink.fault(`${describe(value)}: text is needed`)
  if (value.includes('\u0000')) throw sink.fault('text with NUL')
  if (!value.isWellFormed()) throw sink.fault('text with a lone surrogate')
  return value
}

const writers: Record<CopyType, (sink: Sink, value: Present) => void> = {
  int2: (sink, value) => {
    const number = integer(sink, value, 2 ** 15)
    const { buffer, at } = sink.fixed(2)
    buffer.writeInt16BE(number, at)
  },
  int4: (sink, value) => {
    const number = integer(sink, value, 2 ** 31)
    const { buffer, at } = sink.fixed(4)
    buffer.writeInt32BE(number, at)
  },
  int8: (sink, value) => {
    const isSafe = typeof value === 'number' && Number.isSafeInteger(value)
    if (!isSafe && typeof value !== 'bigint') throw sink.fault(`${describe(value)}: an exact integer is needed`)
    const number = BigInt(value)
    if (BigInt.asIntN(64, number) !== number) throw sink.fault(`${number}: it is out of range`)
    const { buffer, at } = sink.fixed(8)
    buffer.writeBigInt64BE(number, at)
  },
  text: (sink, value) => sink.text(storableText(sink, value)),
  bytea: (sink, value) => {
    if (!Buffer.isBuffer(value)) throw sink.fault(`${describe(value)}: bytes are needed`)
    sink.bytes(value)
  },
  uuid: (sink, value) => sink.bytes(uuidBytes(sink, value)),
  bool: (sink, value) => {
    if (typeof value !== 'boolean') throw sink.fault(`${describe(value)}: true or false is needed`)
    const { buffer, at } = sink.fixed(1)
    buffer[at] = value ? 1 : 0
  },
  date: (sink, value) => {
    const ms = typeof value === 'string' && /^\d{4}-\d{2}-\d{2}$/.test(value) ? Date.parse(`${value}T00:00:00Z`) : NaN
    // The parser takes 30 February for 1 March.
    if (Number.isNaN(ms) || !new Date(ms).toISOString().startsWith(String(value)))
      throw sink.fault(`${describe(value)}: a date of the form YYYY-MM-DD is needed`)
    const { buffer, at } = sink.fixed(4)
    buffer.writeInt32BE(ms / 86_400_000 - epochDays, at)
  },
  timestamptz: (sink, value) => {
    const ms = value instanceof Date ? value.getTime() : value
    if (typeof ms !== 'number' || !Number.isFinite(ms)) throw sink.fault(`${describe(value)}: a time is needed`)
    const { buffer, at } = sink.fixed(8)
    buffer.writeBigInt64BE(BigInt(Math.round((ms - epochMs) * 1000)), at)
  },
  jsonb: (sink, value) => sink.text(storableText(sink, value), 1),
}
