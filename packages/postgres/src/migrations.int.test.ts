import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Log } from '@weir/core'
import { afterEach, describe, expect, it } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/support/database.ts'
import {
  assertMigrated,
  dumpSchema,
  ensureLogins,
  migrate,
  openDatabase,
  loginName,
  serviceRoles,
  type ServiceRole,
} from './index.ts'
import { readMigrations } from './migration-files.ts'

const log: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => log }
const cleanups: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

async function emptyDatabase(): Promise<TestDatabase> {
  const test = await createTestDatabase({ migrated: false })
  cleanups.push(async () => await test.drop())
  return test
}

/** A directory of migrations made for one test. */
async function migrationsOf(files: Record<string, string>): Promise<URL> {
  const directory = await mkdtemp(join(tmpdir(), 'weir-migrations-'))
  cleanups.push(async () => await rm(directory, { recursive: true }))
  for (const [name, sql] of Object.entries(files)) await writeFile(join(directory, name), sql)
  return pathToFileURL(`${directory}/`)
}

const passwords = Object.fromEntries(
  serviceRoles.map(role => [role, `a password of ${role}`.replaceAll(' ', '-')]),
) as Record<ServiceRole, string>

describe('migrations', () => {
  it('make the schema that is committed as schema.sql', async () => {
    const { adminUrl } = await emptyDatabase()
    const files = await readMigrations()
    expect((await migrate({ adminUrl, log })).applied).toEqual(files.map(file => file.name))
    const committed = await readFile(new URL('../schema.sql', import.meta.url), 'utf8')
    const dumped = await dumpSchema(adminUrl)
    // Compared by lines so that a difference shows as such. To accept it: npm run schema in packages/postgres.
    expect(dumped.split('\n')).toEqual(committed.split('\n'))
  })

  it('find nothing to do the second time', async () => {
    const { adminUrl } = await emptyDatabase()
    await migrate({ adminUrl, log })
    const before = await dumpSchema(adminUrl)
    expect((await migrate({ adminUrl, log })).applied).toEqual([])
    expect(await dumpSchema(adminUrl)).toBe(before)
  })

  it('are applied once by twenty at once', async () => {
    const { adminUrl } = await emptyDatabase()
    const results = await Promise.all(Array.from({ length: 20 }, async () => await migrate({ adminUrl, log })))
    const applied = results.flatMap(result => result.applied)
    expect(applied).toEqual((await readMigrations()).map(file => file.name))
  })

  it('of several databases at once share the roles of the cluster', async () => {
    const databases = await Promise.all(Array.from({ length: 6 }, emptyDatabase))
    await Promise.all(
      databases.map(async ({ adminUrl }) => {
        await migrate({ adminUrl, log })
        await ensureLogins({ adminUrl, passwords })
      }),
    )
    const dumps = await Promise.all(databases.map(async ({ adminUrl }) => await dumpSchema(adminUrl)))
    expect(new Set(dumps).size).toBe(1)
  })

  it('go on from any earlier version', async () => {
    const { adminUrl } = await emptyDatabase()
    const files = await readMigrations()
    for (let count = 1; count <= files.length; count++) {
      const some = files.slice(0, count)
      const directory = await migrationsOf(Object.fromEntries(some.map(file => [file.name, file.sql])))
      expect((await migrate({ adminUrl, log, directory })).applied).toEqual([some.at(-1)?.name])
    }
    expect((await migrate({ adminUrl, log })).applied).toEqual([])
  })

  it('that were edited after they were applied are refused by name', async () => {
    const { adminUrl } = await emptyDatabase()
    await migrate({ adminUrl, log, directory: await migrationsOf({ '000001_a.sql': 'select 1' }) })
    const edited = await migrationsOf({ '000001_a.sql': 'select 2' })
    await expect(migrate({ adminUrl, log, directory: edited })).rejects.toMatchObject({
      code: 'migration_changed',
      message: expect.stringContaining('000001_a.sql') as string,
    })
    // The line ends of another system are no change.
    await migrate({ adminUrl, log, directory: await migrationsOf({ '000001_a.sql': 'select 1' }) })
  })

  it('of a newer program are refused', async () => {
    const { adminUrl } = await emptyDatabase()
    await migrate({ adminUrl, log, directory: await migrationsOf({ '000001_a.sql': '', '000002_b.sql': '' }) })
    const older = await migrationsOf({ '000001_a.sql': '' })
    await expect(migrate({ adminUrl, log, directory: older })).rejects.toMatchObject({ code: 'migration_newer' })
  })

  it('are not slipped in below one that is applied', async () => {
    const { adminUrl } = await emptyDatabase()
    await migrate({ adminUrl, log, directory: await migrationsOf({ '000001_a.sql': '', '000003_c.sql': '' }) })
    const late = await migrationsOf({ '000001_a.sql': '', '000002_b.sql': '', '000003_c.sql': '' })
    await expect(migrate({ adminUrl, log, directory: late })).rejects.toMatchObject({ code: 'migration_changed' })
  })

  it('that fail leave nothing behind and can be tried again', async () => {
    const { adminUrl } = await emptyDatabase()
    const broken = await migrationsOf({ '000001_a.sql': 'create schema half; select 1/0' })
    await expect(migrate({ adminUrl, log, directory: broken })).rejects.toMatchObject({
      code: 'internal',
      context: { sqlState: '22012' },
      message: expect.stringContaining('000001_a.sql') as string,
    })
    const mended = await migrationsOf({ '000001_a.sql': 'create schema half' })
    expect((await migrate({ adminUrl, log, directory: mended })).applied).toEqual(['000001_a.sql'])
  })

  it('wait for a busy table only so long, then try again', async () => {
    const { adminUrl } = await emptyDatabase()
    const first = await migrationsOf({ '000001_a.sql': 'create schema a; create table a.t (n int)' })
    await migrate({ adminUrl, log, directory: first })
    const db = openDatabase({ url: adminUrl, applicationName: 'busy' })
    const second = await migrationsOf({
      '000001_a.sql': 'create schema a; create table a.t (n int)',
      '000002_b.sql': "set local lock_timeout = '100ms'; alter table a.t add m int",
    })
    let collided = (): void => undefined
    const collision = new Promise<void>(resolve => {
      collided = resolve
    })
    const watching: Log = { ...log, info: (_, message) => (message.includes('collided') ? collided() : undefined) }
    const migrating = await db.transaction(async tx => {
      await tx.query('select * from a.t')
      const result = migrate({ adminUrl, log: watching, directory: second })
      await collision
      return { result }
    })
    expect(await migrating.result).toEqual({ applied: ['000002_b.sql'] })
    await db.close()
  })
})

describe('the schema', () => {
  it('grants nothing to everyone, and each function has a fixed search path', async () => {
    const { adminUrl } = await emptyDatabase()
    await migrate({ adminUrl, log })
    const db = openDatabase({ url: adminUrl, applicationName: 'test' })
    cleanups.push(async () => await db.close())
    const mine = "n.nspname !~ '^pg_' and n.nspname not in ('information_schema', 'public')"
    const forEveryone = await db.query(
      `select p.oid::regprocedure::text as what from pg_proc p join pg_namespace n on n.oid = p.pronamespace
         where ${mine} and has_function_privilege('public', p.oid, 'execute')
       union all
       select c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
         where ${mine} and exists (select from aclexplode(c.relacl) a where a.grantee = 0)
       union all
       select n.nspname::text from pg_namespace n where ${mine} and has_schema_privilege('public', n.oid, 'usage')`,
    )
    expect(forEveryone).toEqual([])
    const unfixed = await db.query(
      `select p.oid::regprocedure::text as what from pg_proc p join pg_namespace n on n.oid = p.pronamespace
       where ${mine} and not exists (select from unnest(p.proconfig) c where c like 'search_path=%')`,
    )
    expect(unfixed).toEqual([])
  })
})

describe('assertMigrated', () => {
  it('refuses a database that is older, and one with a change that is unsafe for it', async () => {
    const { adminUrl } = await emptyDatabase()
    const db = openDatabase({ url: adminUrl, applicationName: 'test' })
    cleanups.push(async () => await db.close())
    const a = { '000001_a.sql': '-- old code: safe' }
    const ab = { ...a, '000002_b.sql': '-- old code: safe' }
    const abc = { ...ab, '000003_c.sql': '-- old code: unsafe' }
    await expect(assertMigrated(db, await migrationsOf(a))).rejects.toMatchObject({
      code: 'migration_pending',
      message: expect.stringContaining('000001_a.sql') as string,
    })
    await migrate({ adminUrl, log, directory: await migrationsOf(ab) })
    await expect(assertMigrated(db, await migrationsOf(ab))).resolves.toBeUndefined()
    // A rolling deploy: the old program goes on beside a change that is safe for it.
    await expect(assertMigrated(db, await migrationsOf(a))).resolves.toBeUndefined()
    await expect(assertMigrated(db, await migrationsOf(abc))).rejects.toMatchObject({ code: 'migration_pending' })
    await migrate({ adminUrl, log, directory: await migrationsOf(abc) })
    await expect(assertMigrated(db, await migrationsOf(ab))).rejects.toMatchObject({ code: 'migration_newer' })
  })
})

describe('ensureLogins', () => {
  it('gives each service a login of its own that can log in here, and nowhere else', async () => {
    const [here, there] = [await emptyDatabase(), await emptyDatabase()]
    for (const { adminUrl } of [here, there]) await migrate({ adminUrl, log })
    const urls = await ensureLogins({ adminUrl: here.adminUrl, passwords })
    for (const role of serviceRoles) {
      const db = openDatabase({ url: urls[role], applicationName: 'test' })
      const [row] = await db.query('select current_user as name, current_database() as database')
      expect(row).toEqual({ name: loginName(here.name, role), database: here.name })
      await db.close()
      const elsewhere = new URL(urls[role])
      elsewhere.pathname = `/${there.name}`
      const refused = openDatabase({ url: elsewhere.href, applicationName: 'test' })
      await expect(refused.query('select 1')).rejects.toMatchObject({ context: { sqlState: '42501' } })
      await refused.close()
    }
  })

  it('bounds a login on the server, whatever its program sets or forgets', async () => {
    const { adminUrl, name } = await emptyDatabase()
    await migrate({ adminUrl, log })
    await ensureLogins({ adminUrl, passwords })
    const db = openDatabase({ url: adminUrl, applicationName: 'test' })
    cleanups.push(async () => await db.close())
    const [reader] = await db.query(
      'select rolconfig, rolsuper, rolcreaterole, rolcreatedb from pg_roles where rolname = $1',
      [loginName(name, 'audit_reader')],
    )
    expect(reader).toEqual({
      rolconfig: [
        'statement_timeout=30000',
        'lock_timeout=5000',
        'idle_in_transaction_session_timeout=5000',
        'default_transaction_read_only=on',
      ],
      rolsuper: false,
      rolcreaterole: false,
      rolcreatedb: false,
    })
  })

  it('can be called again with new passwords, and by many at once', async () => {
    const { adminUrl } = await emptyDatabase()
    await migrate({ adminUrl, log })
    await Promise.all(Array.from({ length: 5 }, async () => await ensureLogins({ adminUrl, passwords })))
    const changed = { ...passwords, dedup: 'another-password-!"$%&/()=?' }
    const urls = await ensureLogins({ adminUrl, passwords: changed })
    const db = openDatabase({ url: urls.dedup, applicationName: 'test' })
    await expect(db.query('select 1 as one')).resolves.toEqual([{ one: 1 }])
    await db.close()
  })

  it('refuses a weak password by the name of its service', async () => {
    const { adminUrl } = await emptyDatabase()
    await expect(ensureLogins({ adminUrl, passwords: { ...passwords, policy: 'short' } })).rejects.toMatchObject({
      code: 'config_invalid',
      message: expect.stringContaining('policy') as string,
    })
  })
})
