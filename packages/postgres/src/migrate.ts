import { setTimeout as delay } from 'node:timers/promises'
import { type Log, WeirError } from '@weir/core'
import type pg from 'pg'
import { withAdminClient } from './admin-client.ts'
import type { Queryable } from './database.ts'
import { isServerError, toDatabaseError } from './database-error.ts'
import { type MigrationFile, readMigrations } from './migration-files.ts'

export interface MigrateOptions {
  /** URL of a role that may create schemas and roles. */
  readonly adminUrl: string
  readonly log: Log
  /** Another directory of migrations, ending in `/`; default: this package's. */
  readonly directory?: URL
}

/** One lock for all of Weir's changes to a database; the number is the text "weir" as int4. */
const migrationLock = 0x77656972
/** How long to wait for another process that migrates the same database. */
const turnTimeoutMs = 110_000
/** Longest wait for one lock of a table: a migration that waits longer would hold up every reader behind it. */
const tableLockTimeoutMs = 5_000
const attempts = 8

interface AppliedRow {
  readonly version: number
  readonly name: string
  readonly sha256: string
  readonly safe_for_old_code: boolean
}

/**
 * Applies what is missing, each file in its own transaction. Safe to call from many processes at once: one works, the others
 * wait and find nothing to do. Throws `migration_changed`, `migration_newer` or a database error; then nothing of the failed
 * file is applied.
 */
export async function migrate(options: MigrateOptions): Promise<{ readonly applied: readonly string[] }> {
  const files = await readMigrations(options.directory)
  return await withAdminClient({ adminUrl: options.adminUrl, doing: 'migrate' }, async client => {
    await inTurn(client, async () => await createBookkeeping(client))
    const applied: string[] = []
    await inTurn(client, async () => {
      for (const file of pendingOf(files, await readApplied(client))) {
        await applyWithRetry(client, file, options.log)
        applied.push(file.name)
      }
    })
    return { applied }
  })
}

/** Runs `work` while this connection holds the migration lock of its database. */
export async function inTurn<T>(client: pg.Client, work: () => Promise<T>): Promise<T> {
  await client.query(`set lock_timeout = ${turnTimeoutMs}`)
  await client.query('select pg_advisory_lock($1)', [migrationLock])
  await client.query(`set lock_timeout = ${tableLockTimeoutMs}`)
  try {
    return await work()
  } finally {
    await client.query('select pg_advisory_unlock($1)', [migrationLock])
  }
}

async function createBookkeeping(client: pg.Client): Promise<void> {
  await client.query(`
    create schema if not exists weir;
    create table if not exists weir.migration (
      version int primary key,
      name text not null,
      sha256 text not null,
      safe_for_old_code boolean not null,
      applied_at timestamptz not null default now()
    )`)
}

const selectApplied = 'select version, name, sha256, safe_for_old_code from weir.migration order by version'

async function readApplied(client: pg.Client): Promise<readonly AppliedRow[]> {
  return (await client.query<AppliedRow>(selectApplied)).rows
}

/** What is still to be applied; throws when the database and the files contradict each other. */
function pendingOf(files: readonly MigrationFile[], applied: readonly AppliedRow[]): readonly MigrationFile[] {
  const byVersion = new Map(files.map(file => [file.version, file]))
  for (const row of applied) {
    const file = byVersion.get(row.version)
    if (!file) throw newer(row)
    if (file.sha256 !== row.sha256) {
      throw new WeirError(
        'migration_changed',
        `${file.name} was applied with SHA-256 ${row.sha256} but now has ${file.sha256}. Restore the file; put the change into a new migration.`,
        { context: { migration: file.name } },
      )
    }
  }
  const done = new Set(applied.map(row => row.version))
  const highest = applied.at(-1)
  const pending = files.filter(file => !done.has(file.version))
  const late = pending[0]
  if (late && highest && late.version < highest.version) {
    throw new WeirError(
      'migration_changed',
      `${late.name} is not applied but ${highest.name} is. Migrations are only added at the end: give it a higher number.`,
      { context: { migration: late.name } },
    )
  }
  return pending
}

function newer(row: AppliedRow): WeirError {
  return new WeirError(
    'migration_newer',
    `The database has migration ${row.name}, which this program does not know. Use the version of Weir that applied it, or a newer one.`,
    { context: { migration: row.name } },
  )
}

/**
 * Roles belong to the whole cluster, so migrations of two databases can meet in them; such a collision, like a busy table, is
 * tried again. Nothing else is.
 */
async function applyWithRetry(client: pg.Client, file: MigrationFile, log: Log): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await applyOne(client, file)
      log.info({ migration: file.name, attempt }, 'migration applied')
      return
    } catch (error) {
      await client.query('rollback')
      if (attempt === attempts || !isCollision(error)) throw toDatabaseError(error, `migration ${file.name}`)
      log.info({ migration: file.name, attempt, err: error }, 'migration collided with another session, trying again')
      await delay(50 * 2 ** attempt * (0.5 + Math.random()))
    }
  }
}

async function applyOne(client: pg.Client, file: MigrationFile): Promise<void> {
  await client.query('begin')
  await client.query(file.sql)
  await client.query('insert into weir.migration (version, name, sha256, safe_for_old_code) values ($1, $2, $3, $4)', [
    file.version,
    file.name,
    file.sha256,
    file.safeForOldCode,
  ])
  await client.query('commit')
}

/** Collisions in the shared catalogues: lost races for a role, updates of one catalogue row, deadlocks, busy tables. */
export function isCollision(error: unknown): boolean {
  if (!isServerError(error)) return false
  if (error.code === 'XX000') return error.message.includes('tuple concurrently')
  if (error.code === '23505') return error.schema === 'pg_catalog'
  return ['42710', '40P01', '40001', '55P03'].includes(error.code)
}

/**
 * Whether this program and the database fit: throws `migration_pending` when the database is older, and `migration_newer` when
 * it has a migration that programs without knowledge of it must not run beside.
 */
export async function assertMigrated(db: Queryable, directory?: URL): Promise<void> {
  const files = await readMigrations(directory)
  const applied = await appliedAsService(db)
  const known = new Set(files.map(file => file.version))
  const foreign = applied.find(row => !known.has(row.version) && !row.safe_for_old_code)
  if (foreign) throw newer(foreign)
  const done = new Set(applied.map(row => row.version))
  const missing = files.filter(file => !done.has(file.version)).map(file => file.name)
  if (missing.length > 0) {
    throw new WeirError(
      'migration_pending',
      `The database lacks ${missing.join(', ')}. Run \`weir up\` or migrate it.`,
      {
        context: { missing },
      },
    )
  }
}

async function appliedAsService(db: Queryable): Promise<readonly AppliedRow[]> {
  const [table] = await db.query<{ present: boolean }>("select to_regclass('weir.migration') is not null as present")
  return table?.present === true ? await db.query<AppliedRow>(selectApplied) : []
}
