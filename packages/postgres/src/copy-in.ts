import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import { WeirError } from '@weir/core'
import type pg from 'pg'
import { CopyEncoder, type CopyColumn, type CopyValue } from './copy-encoder.ts'
import { identifier, tableIdentifier } from './identifiers.ts'

export type { CopyColumn, CopyValue } from './copy-encoder.ts'

/** What pg 8.23 offers on its connection for COPY; its types leave it out. */
interface CopyConnection {
  readonly stream: Duplex
  query(text: string): void
  sendCopyFromChunk(chunk: Buffer): void
  endCopyFrom(): void
  sendCopyFail(message: string): void
}

/** Runs one COPY on the client's connection. Waits for the socket to drain between chunks, so memory stays bounded. */
export async function runCopy(
  client: pg.PoolClient,
  table: string,
  columns: readonly CopyColumn[],
  rows: readonly (readonly CopyValue[])[],
): Promise<number> {
  if (rows.length === 0) return 0
  const names = columns.map(column => identifier(column.name)).join(', ')
  const sql = `copy ${tableIdentifier(table)} (${names}) from stdin (format binary)`
  return await new Promise<number>((resolve, reject) => {
    client.query(new CopyIn(sql, new CopyEncoder(columns).encode(rows), { resolve, reject }))
  })
}

interface Settle {
  readonly resolve: (rows: number) => void
  readonly reject: (error: unknown) => void
}

/** The query object pg drives: it calls the `handle…` methods as the server's answers arrive. */
class CopyIn {
  readonly #sql: string
  readonly #chunks: Generator<Buffer, void, undefined>
  readonly #settle: Settle
  #ended = false
  #fault: unknown = null
  #rows = 0
  /** Set and called by pg when the whole statement takes too long (`query_timeout`). */
  callback: (error: unknown) => void = () => undefined

  constructor(sql: string, chunks: Generator<Buffer, void, undefined>, settle: Settle) {
    this.#sql = sql
    this.#chunks = chunks
    this.#settle = settle
  }

  submit(connection: pg.Connection): void {
    copyConnection(connection).query(this.#sql)
  }

  handleCopyInResponse(connection: pg.Connection): void {
    void this.#send(copyConnection(connection))
  }

  handleCommandComplete(message: { readonly text: string }): void {
    this.#rows = Number(message.text.split(' ').at(-1))
  }

  handleReadyForQuery(): void {
    this.#end(null)
  }

  handleError(error: unknown): void {
    this.#end(this.#fault ?? error)
  }

  /** Never rejects: an error of ours is told to the server, whose answer then ends the statement with ours. */
  async #send(connection: CopyConnection): Promise<void> {
    try {
      for (const chunk of this.#chunks) {
        if (this.#ended) return
        connection.sendCopyFromChunk(chunk)
        if (connection.stream.writableNeedDrain) await drained(connection.stream)
      }
      if (!this.#ended) connection.endCopyFrom()
    } catch (error) {
      this.#fault = error
      if (!this.#ended) connection.sendCopyFail('the client cannot encode a value')
    }
  }

  #end(error: unknown): void {
    if (this.#ended) return
    this.#ended = true
    this.callback(error)
    if (error === null) this.#settle.resolve(this.#rows)
    else this.#settle.reject(error)
  }
}

/** Resolves when the socket can take more, or is gone: then pg reports the loss to the statement. */
async function drained(stream: Duplex): Promise<void> {
  const stop = new AbortController()
  const options = { signal: stop.signal }
  try {
    await Promise.race([once(stream, 'drain', options), once(stream, 'close', options)])
  } finally {
    stop.abort()
  }
}

function copyConnection(connection: unknown): CopyConnection {
  const candidate = connection as Partial<CopyConnection>
  if (candidate.sendCopyFromChunk && candidate.endCopyFrom && candidate.sendCopyFail && candidate.stream) {
    return candidate as CopyConnection
  }
  throw new WeirError('internal', 'This version of pg has no COPY support on its connection; use the pinned version')
}
