import { WeirError } from '@weir/core'

/** SQLSTATEs (or their two-character classes) that say "not now": the same statement can succeed later. */
const transientStates = new Set([
  '08', // connection
  '25006', // read-only transaction: connected to a standby
  '25P03', // idle in transaction for too long
  '28', // login refused
  '3D000', // no such database
  '40', // serialization failure, deadlock
  '53', // disk, memory or connections used up
  '55P03', // lock not available in time
  '57014', // cancelled, statement timeout
  '57P01', // shut down by the administrator
  '57P02',
  '57P03', // starting up
  '57P05',
  '58', // system or I/O error
])

interface ServerError extends Error {
  readonly code: string
  readonly severity: string
  readonly schema?: string
  readonly table?: string
  readonly column?: string
  readonly constraint?: string
}

/** Whether the server itself sent this error. */
export function isServerError(error: unknown): error is ServerError {
  return (
    error instanceof Error &&
    'severity' in error &&
    typeof error.severity === 'string' &&
    'code' in error &&
    typeof error.code === 'string' &&
    /^[0-9A-Z]{5}$/.test(error.code)
  )
}

/** Whether the connection can still be used: not after silence or a broken line, nor when the server itself ends the session. */
export function endsConnection(error: unknown): boolean {
  if (!isServerError(error)) return true
  // The severity is in the server's language, so the codes are looked at as well.
  return ['FATAL', 'PANIC'].includes(error.severity) || /^(57P|08|25P0[34])/.test(error.code)
}

/**
 * What a foreign throwable of the driver means: `database_unavailable` when a later try can cure it (no connection, shutdown,
 * deadlock, timeout), else `internal`. The context carries `sqlState` and the names of schema, table and constraint, never
 * row values: the server's detail text is left out.
 */
export function toDatabaseError(error: unknown, doing: string): WeirError {
  if (error instanceof WeirError) return error
  const text = error instanceof Error ? error.message || error.name : String(error)
  if (!isServerError(error)) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : null
    return new WeirError('database_unavailable', `Postgres does not answer (${doing}): ${code ?? text}`, {
      cause: error,
      context: { doing, sqlState: null },
    })
  }
  const transient = transientStates.has(error.code) || transientStates.has(error.code.slice(0, 2))
  return new WeirError(
    transient ? 'database_unavailable' : 'internal',
    `Postgres refused (${doing}): ${text} (SQLSTATE ${error.code})`,
    {
      cause: error,
      context: {
        doing,
        sqlState: error.code,
        schema: error.schema,
        table: error.table,
        column: error.column,
        constraint: error.constraint,
      },
    },
  )
}

/** SQLSTATE of an error of this package, `null` when it has none. */
export function sqlStateOf(error: unknown): string | null {
  if (!(error instanceof WeirError)) return null
  const state = error.context['sqlState']
  return typeof state === 'string' ? state : null
}
