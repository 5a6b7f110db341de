import type { WeirError } from '@weir/core'
import pg from 'pg'
import { connectionConfig, type ConnectionOptions } from './connection-options.ts'
import { runCopy, type CopyColumn, type CopyValue } from './copy-in.ts'
import { endsConnection, toDatabaseError } from './database-error.ts'

/** A bound parameter. Arrays become Postgres arrays, `Buffer` bytea; JSON is passed as text. */
export type SqlValue = string | number | bigint | boolean | Buffer | Date | null | readonly SqlValue[]

export interface QueryOptions {
  /** Name under which the statement stays prepared on each connection: saves parsing and planning on hot paths. */
  readonly prepareAs?: string
}

export interface Queryable {
  /** One statement; its rows. Throws `database_unavailable` (retriable) or `internal` with `sqlState` in the context. */
  query<Row extends object = Record<string, unknown>>(
    sql: string,
    params?: readonly SqlValue[],
    options?: QueryOptions,
  ): Promise<Row[]>
}

export interface Transaction extends Queryable {
  /**
   * Appends rows with COPY … (FORMAT binary). `table` is `schema.table`. Returns the number of rows written. A value that its
   * column type cannot hold is `invalid_value`, names row and column, and leaves the transaction aborted.
   */
  copyBinary(table: string, columns: readonly CopyColumn[], rows: readonly (readonly CopyValue[])[]): Promise<number>
}

export interface Database extends Queryable {
  /** Runs `fn` in one transaction on one connection: commits when it resolves, rolls back when it throws. */
  transaction<T>(fn: (tx: Transaction) => Promise<T>): Promise<T>
  /** Called for each connection that breaks while idle; the pool has dropped it and opens another when needed. */
  onError(listener: (error: WeirError) => void): void
  /** Waits for work in hand, then closes all connections. May be called twice. */
  close(): Promise<void>
}

export interface DatabaseOptions extends ConnectionOptions {
  /** Connections at most. Default 8. */
  readonly maxConnections?: number
}

/** A pool; connects on first use. */
export function openDatabase(options: DatabaseOptions): Database {
  const pool = new pg.Pool({ ...connectionConfig(options), max: options.maxConnections ?? 8 })
  const listeners: ((error: WeirError) => void)[] = []
  pool.on('error', error => {
    const converted = toDatabaseError(error, 'idle connection')
    for (const listener of listeners) listener(converted)
  })
  let closed: Promise<void> | null = null
  return {
    query: async (sql, params = [], queryOptions = {}) =>
      await withClient(pool, async client => await run(client, sql, params, queryOptions)),
    transaction: async fn => await withClient(pool, async client => await transact(client, fn)),
    onError: listener => void listeners.push(listener),
    close: async () => {
      closed ??= pool.end()
      await closed
    },
  }
}

/** Lends a connection; one that broke or fell out of step with the server is destroyed instead of returned. */
async function withClient<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  let client: pg.PoolClient
  try {
    client = await pool.connect()
  } catch (error) {
    throw toDatabaseError(error, 'connect')
  }
  let broken = false
  // Without a listener a broken connection would end the process; the statement in flight reports the error.
  const onBroken = (): void => {
    broken = true
  }
  client.on('error', onBroken)
  try {
    return await work(client)
  } finally {
    client.off('error', onBroken)
    client.release(broken || outOfStep.has(client) || client.getTransactionStatus() !== 'I')
  }
}

/** Connections that are over: no answer, or the server's last. */
const outOfStep = new WeakSet<pg.PoolClient>()

async function run<Row extends object>(
  client: pg.PoolClient,
  sql: string,
  params: readonly SqlValue[],
  options: QueryOptions,
): Promise<Row[]> {
  try {
    const result = await client.query<Row>({
      text: sql,
      values: [...params],
      ...(options.prepareAs === undefined ? {} : { name: options.prepareAs }),
    })
    return result.rows
  } catch (error) {
    throw failed(client, error, firstLine(sql))
  }
}

function failed(client: pg.PoolClient, error: unknown, doing: string): WeirError {
  const converted = toDatabaseError(error, doing)
  if (endsConnection(error)) outOfStep.add(client)
  return converted
}

async function transact<T>(client: pg.PoolClient, fn: (tx: Transaction) => Promise<T>): Promise<T> {
  await run(client, 'begin', [], {})
  let result: T
  try {
    result = await fn({
      query: async (sql, params = [], options = {}) => await run(client, sql, params, options),
      copyBinary: async (table, columns, rows) => {
        try {
          return await runCopy(client, table, columns, rows)
        } catch (error) {
          throw failed(client, error, `copy into ${table}`)
        }
      },
    })
  } catch (error) {
    await rollBack(client)
    throw error
  }
  await commit(client)
  return result
}

/** `commit` of an aborted transaction is answered with ROLLBACK and no error; that must not pass as success. */
async function commit(client: pg.PoolClient): Promise<void> {
  let command: string
  try {
    command = (await client.query('commit')).command
  } catch (error) {
    throw failed(client, error, 'commit; whether it took place is unknown')
  }
  if (command === 'COMMIT') return
  throw toDatabaseError(
    Object.assign(new Error('the transaction was already aborted by an error that was not passed on'), {
      code: '25P02',
      severity: 'ERROR',
    }),
    'commit',
  )
}

/** A failed rollback needs no report: the connection is dropped, which rolls back, and the first error is the one to show. */
async function rollBack(client: pg.PoolClient): Promise<void> {
  if (outOfStep.has(client)) return
  try {
    await client.query('rollback')
  } catch {
    outOfStep.add(client)
  }
}

function firstLine(sql: string): string {
  const line = sql.trim().split('\n', 1)[0] ?? ''
  return line.length > 80 ? `${line.slice(0, 77)}...` : line
}
