import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { WeirError } from '@weir/core'
import type pg from 'pg'
import { withAdminClient } from './admin-client.ts'
import { databaseUrl } from './connection-options.ts'
import { inTurn, isCollision } from './migrate.ts'

/** Each service has its own rights; the audit store's readers have another role than its writer. */
export type ServiceRole = 'ingest' | 'dedup' | 'policy' | 'audit_sink' | 'audit_reader'

interface RoleSettings {
  readonly statementTimeoutMs: number
  readonly lockTimeoutMs: number
  readonly readOnly: boolean
}

const idleInTransactionTimeoutMs = 5_000

/** Bounds that hold for a login whatever its program sets or forgets. */
const roleSettings: Record<ServiceRole, RoleSettings> = {
  ingest: { statementTimeoutMs: 5_000, lockTimeoutMs: 2_000, readOnly: false },
  dedup: { statementTimeoutMs: 30_000, lockTimeoutMs: 10_000, readOnly: false },
  policy: { statementTimeoutMs: 30_000, lockTimeoutMs: 10_000, readOnly: false },
  audit_sink: { statementTimeoutMs: 60_000, lockTimeoutMs: 10_000, readOnly: false },
  audit_reader: { statementTimeoutMs: 30_000, lockTimeoutMs: 5_000, readOnly: true },
}

export const serviceRoles = Object.keys(roleSettings) as readonly ServiceRole[]

export interface LoginOptions {
  /** URL of a role that may create roles, naming the database the logins are for. */
  readonly adminUrl: string
  /** One password per service, printable ASCII of at least 16 characters. Only their SCRAM verifiers are sent to the server. */
  readonly passwords: Readonly<Record<ServiceRole, string>>
}

/**
 * Makes or updates one login role per service, named `<database>_<service>_login`, a member of the group role `weir_<service>` that
 * the migrations made, and allowed to connect to this database only. Returns the URL of each. Call after `migrate`.
 */
export async function ensureLogins(options: LoginOptions): Promise<Record<ServiceRole, string>> {
  const url = databaseUrl(options.adminUrl)
  const database = decodeURIComponent(url.pathname.slice(1))
  for (const role of serviceRoles) checkPassword(role, options.passwords[role])
  await withAdminClient({ adminUrl: options.adminUrl, doing: 'create logins' }, async client => {
    await inTurn(client, async () => {
      for (const role of serviceRoles) await ensureLogin(client, database, role, options.passwords[role])
    })
  })
  const urls = serviceRoles.map(role => [role, loginUrl(url, loginName(database, role), options.passwords[role])])
  return Object.fromEntries(urls) as Record<ServiceRole, string>
}

/**
 * `<database>_<service>_login`; a database name too long for that is cut, with its hash in the name. The ending keeps the logins of
 * a database `weir` apart from the group roles `weir_<service>`.
 */
export function loginName(database: string, role: ServiceRole): string {
  const name = `${database}_${role}_login`
  if (Buffer.byteLength(name) <= 63) return name
  const hash = createHash('sha256').update(database).digest('hex').slice(0, 8)
  return `${database.slice(0, 34)}_${hash}_${role}_login`
}

async function ensureLogin(client: pg.Client, database: string, role: ServiceRole, password: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await client.query('begin')
      for (const statement of await loginStatements(client, database, role, password)) await client.query(statement)
      await client.query('commit')
      return
    } catch (error) {
      await client.query('rollback')
      if (attempt === 8 || !isCollision(error)) throw error
      await delay(50 * 2 ** attempt * (0.5 + Math.random()))
    }
  }
}

async function loginStatements(
  client: pg.Client,
  database: string,
  role: ServiceRole,
  password: string,
): Promise<readonly string[]> {
  const name = loginName(database, role)
  const login = client.escapeIdentifier(name)
  const settings = roleSettings[role]
  const known = await client.query('select from pg_roles where rolname = $1', [name])
  const attributes = 'login nosuperuser nocreatedb nocreaterole inherit'
  const verifier = client.escapeLiteral(scramVerifier(password, randomBytes(16)))
  return [
    `${known.rowCount === 0 ? 'create' : 'alter'} role ${login} ${attributes} password ${verifier}`,
    `grant weir_${role} to ${login}`,
    `grant connect on database ${client.escapeIdentifier(database)} to ${login}`,
    `alter role ${login} set statement_timeout = ${settings.statementTimeoutMs}`,
    `alter role ${login} set lock_timeout = ${settings.lockTimeoutMs}`,
    `alter role ${login} set idle_in_transaction_session_timeout = ${idleInTransactionTimeoutMs}`,
    `alter role ${login} set default_transaction_read_only = ${settings.readOnly ? 'on' : 'off'}`,
  ]
}

function checkPassword(role: ServiceRole, password: string): void {
  if (/^[\x21-\x7e]{16,}$/.test(password)) return
  throw new WeirError(
    'config_invalid',
    `The database password of ${role} must be 16 or more printable ASCII characters without spaces`,
  )
}

/** What Postgres stores for a password under SCRAM-SHA-256 (RFC 5803), so that the password itself is never sent or logged. */
function scramVerifier(password: string, salt: Buffer, iterations = 4096): string {
  const salted = pbkdf2Sync(password, salt, iterations, 32, 'sha256')
  const sign = (text: string): Buffer => createHmac('sha256', salted).update(text).digest()
  const storedKey = createHash('sha256').update(sign('Client Key')).digest('base64')
  return `SCRAM-SHA-256$${iterations}:${salt.toString('base64')}$${storedKey}:${sign('Server Key').toString('base64')}`
}

function loginUrl(admin: URL, user: string, password: string): string {
  const url = new URL(admin)
  url.username = encodeURIComponent(user)
  url.password = encodeURIComponent(password)
  return url.href
}
