import { WeirError } from '@weir/core'
import type pg from 'pg'
import { resultTypes } from './result-types.ts'

export interface ConnectionOptions {
  /** `postgres://user:password@host:port/database`. */
  readonly url: string
  /** Shown in `pg_stat_activity`; at most 63 bytes. */
  readonly applicationName: string
  /** Longest a statement may run, milliseconds. Default 30,000. */
  readonly statementTimeoutMs?: number
  /** Longest a statement may wait for one lock, milliseconds. Default 5,000. */
  readonly lockTimeoutMs?: number
}

const defaultStatementTimeoutMs = 30_000
const defaultLockTimeoutMs = 5_000
const idleInTransactionTimeoutMs = 5_000
const connectTimeoutMs = 5_000
/** The client waits this much longer than the server before it gives up a connection that stays silent. */
const silenceMarginMs = 5_000

/** Settings every connection starts with. Claims are only safe at read committed: a function sees what it waited for. */
export function connectionConfig(options: ConnectionOptions): pg.ClientConfig & { query_timeout: number } {
  const statementTimeoutMs = options.statementTimeoutMs ?? defaultStatementTimeoutMs
  const url = databaseUrl(options.url)
  const own = url.searchParams.get('options')
  url.searchParams.delete('options')
  const settings = [
    '-c synchronous_commit=on',
    '-c default_transaction_isolation=read\\ committed',
    '-c search_path=pg_catalog',
    '-c timezone=UTC',
  ]
  return {
    connectionString: url.href,
    application_name: options.applicationName,
    options: [...(own === null ? [] : [own]), ...settings].join(' '),
    statement_timeout: statementTimeoutMs,
    lock_timeout: options.lockTimeoutMs ?? defaultLockTimeoutMs,
    idle_in_transaction_session_timeout: idleInTransactionTimeoutMs,
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: statementTimeoutMs === 0 ? 0 : statementTimeoutMs + silenceMarginMs,
    keepAlive: true,
    types: resultTypes as pg.CustomTypesConfig,
  }
}

/** A database URL, checked; the error does not repeat it, since it holds a password. */
export function databaseUrl(text: string): URL {
  const url = URL.parse(text)
  if (url && (url.protocol === 'postgres:' || url.protocol === 'postgresql:') && url.pathname.length > 1) return url
  throw new WeirError(
    'config_invalid',
    'The database URL is not of the form postgres://user:password@host:5432/database. Correct DATABASE_URL.',
  )
}
