import { createServer, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/support/database.ts'
import { openDatabase, sqlStateOf, type CopyValue, type Database } from './index.ts'

let test: TestDatabase
let db: Database

beforeAll(async () => {
  test = await createTestDatabase({ migrated: false })
  db = openDatabase({ url: test.adminUrl, applicationName: 'test', maxConnections: 4 })
  await db.query('create schema t')
  await db.query(
    `create table t.all_types (i2 int2, i4 int4, i8 int8, t text, b bytea, u uuid, o bool, d date, z timestamptz, j jsonb)`,
  )
  await db.query('create table t.numbers (n int primary key)')
})

afterAll(async () => {
  await db.close()
  await test.drop()
})

const uuid = '00112233-4455-6677-8899-aabbccddeeff'
const columns = [
  { name: 'i2', type: 'int2' },
  { name: 'i4', type: 'int4' },
  { name: 'i8', type: 'int8' },
  { name: 't', type: 'text' },
  { name: 'b', type: 'bytea' },
  { name: 'u', type: 'uuid' },
  { name: 'o', type: 'bool' },
  { name: 'd', type: 'date' },
  { name: 'z', type: 'timestamptz' },
  { name: 'j', type: 'jsonb' },
] as const

async function numbers(): Promise<number> {
  const [row] = await db.query<{ count: number }>('select count(*) from t.numbers')
  return row?.count ?? -1
}

describe('openDatabase', () => {
  it('starts each connection with its bounds and with durable commits', async () => {
    const names = ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'synchronous_commit']
    const rows = await db.query<{ setting: string }>(
      'select setting from unnest($1::text[]) with ordinality as wanted (name, i) join pg_settings using (name) order by i',
      [[...names, 'default_transaction_isolation', 'search_path', 'TimeZone']],
    )
    expect(rows.map(row => row.setting)).toEqual(['30000', '5000', '5000', 'on', 'read committed', 'pg_catalog', 'UTC'])
  })

  it('gives int8 back as a number and refuses to round', async () => {
    const [row] = await db.query('select $1::int8 as i, $2::int8[] as list, $3::date as day', [
      2n ** 53n - 1n,
      [1, null],
      '2024-02-29',
    ])
    expect(row).toEqual({ i: Number.MAX_SAFE_INTEGER, list: [1, null], day: '2024-02-29' })
    await expect(db.query('select $1::int8 as i', [2n ** 53n])).rejects.toMatchObject({
      code: 'internal',
      message: expect.stringContaining('9007199254740992') as string,
    })
    // The connection goes on.
    await expect(db.query('select 1 as one')).resolves.toEqual([{ one: 1 }])
  })

  it('passes arrays of bytes, texts and booleans unharmed', async () => {
    const texts = ['', 'a,b', '{"x":"\\\\"}', 'NULL', 'é']
    const [row] = await db.query('select $1::bytea[] as b, $2::text[] as t, $3::bool[] as o, $4::uuid[] as u', [
      [Buffer.from([0, 1]), null, Buffer.alloc(0)],
      texts,
      [true, false],
      [uuid],
    ])
    expect(row).toEqual({ b: [Buffer.from([0, 1]), null, Buffer.alloc(0)], t: texts, o: [true, false], u: [uuid] })
  })

  it('keeps the SQLSTATE and the constraint of what the server refuses, without row values', async () => {
    await db.query('insert into t.numbers values (1)')
    const refused = db.query('insert into t.numbers values (1)')
    await expect(refused).rejects.toMatchObject({
      code: 'internal',
      context: { sqlState: '23505', constraint: 'numbers_pkey', table: 'numbers' },
    })
    await expect(refused).rejects.not.toMatchObject({ message: expect.stringContaining('(n)=(1)') as string })
    await db.query('delete from t.numbers')
  })

  it('says that an unreachable server is a matter of time', async () => {
    const url = new URL(test.adminUrl)
    url.port = '1'
    const away = openDatabase({ url: url.href, applicationName: 'test' })
    await expect(away.query('select 1')).rejects.toMatchObject({ code: 'database_unavailable', retriable: true })
    await away.close()
  })

  it('reports a connection that the server ends while idle, and opens another', async () => {
    const lone = openDatabase({ url: test.adminUrl, applicationName: 'idle victim', maxConnections: 1 })
    const broken = new Promise<unknown>(resolve => {
      lone.onError(resolve)
    })
    await lone.query('select 1')
    await db.query("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'idle victim'")
    await expect(broken).resolves.toMatchObject({ code: 'database_unavailable' })
    await expect(lone.query('select 2 as two')).resolves.toEqual([{ two: 2 }])
    await lone.close()
    await lone.close()
  })

  it('reports a connection that the server ends in mid-statement as unavailable', async () => {
    const lone = openDatabase({ url: test.adminUrl, applicationName: 'busy victim', maxConnections: 1 })
    const slow = lone.query('select pg_sleep(20)').catch((error: unknown) => error)
    await until(async () => (await terminate('busy victim', 'active')) > 0)
    expect(await slow).toMatchObject({ code: 'database_unavailable', context: { sqlState: '57P01' } })
    await expect(lone.query('select 2 as two')).resolves.toEqual([{ two: 2 }])
    await lone.close()
  })

  it('gives up a server that stays silent, and that connection with it', async () => {
    const proxy = await silentProxy(test.adminUrl)
    const lone = openDatabase({ url: proxy.url, applicationName: 'test', maxConnections: 1, statementTimeoutMs: 100 })
    await lone.query('select 1')
    proxy.silence()
    await expect(lone.query('select 1')).rejects.toMatchObject({ code: 'database_unavailable' })
    proxy.speak()
    await expect(lone.query('select 2 as two')).resolves.toEqual([{ two: 2 }])
    await lone.close()
    await proxy.close()
  }, 20_000)

  it('bounds statements and waits for locks', async () => {
    const hasty = openDatabase({
      url: test.adminUrl,
      applicationName: 'test',
      statementTimeoutMs: 400,
      lockTimeoutMs: 100,
    })
    await expect(hasty.query('select pg_sleep(5)')).rejects.toMatchObject({
      code: 'database_unavailable',
      context: { sqlState: '57014' },
    })
    await db.transaction(async tx => {
      await tx.query('lock table t.numbers')
      await expect(hasty.query('select * from t.numbers')).rejects.toMatchObject({ context: { sqlState: '55P03' } })
    })
    await hasty.close()
  })
})

describe('transaction', () => {
  it('commits what it resolves and rolls back what it throws', async () => {
    await expect(
      db.transaction(async tx => await tx.query('insert into t.numbers values (7) returning n')),
    ).resolves.toEqual([{ n: 7 }])
    const failing = db.transaction(async tx => {
      await tx.query('insert into t.numbers values (8)')
      throw new Error('on second thought')
    })
    await expect(failing).rejects.toThrow('on second thought')
    await expect(db.query('select n from t.numbers')).resolves.toEqual([{ n: 7 }])
    await db.query('delete from t.numbers')
  })

  it('does not pass a commit of an aborted transaction as success', async () => {
    const swallowed = db.transaction(async tx => {
      await tx.query('select 1/0').catch(() => null)
    })
    await expect(swallowed).rejects.toSatisfy(error => sqlStateOf(error) === '25P02')
  })

  it('is ended by the server when it lies idle, and the pool recovers', async () => {
    const lone = openDatabase({ url: test.adminUrl, applicationName: 'dreamer', maxConnections: 1 })
    const idle = lone.transaction(async tx => {
      await tx.query('insert into t.numbers values (9)')
      await until(async () => (await sessions('dreamer')) === 0, 20_000)
      await tx.query('select 1')
    })
    await expect(idle).rejects.toMatchObject({ code: 'database_unavailable' })
    await expect(lone.query('select n from t.numbers')).resolves.toEqual([])
    await lone.close()
  }, 30_000)
})

describe('copyBinary', () => {
  it('writes values of every type that read back as they were', async () => {
    const at = new Date('2026-12-01T04:05:06.789Z')
    const row: CopyValue[] = [
      -1,
      2,
      2n ** 62n,
      'é"\\\n',
      Buffer.from([0, 255]),
      uuid,
      true,
      '1969-07-20',
      at,
      '{"a": [1]}',
    ]
    const written = await db.transaction(
      async tx => await tx.copyBinary('t.all_types', columns, [row, columns.map(() => null)]),
    )
    expect(written).toBe(2)
    const rows = await db.query('select i2, i4, i8::text, t, b, u, o, d, z, j from t.all_types order by i2')
    expect(rows[0]).toEqual({
      i2: -1,
      i4: 2,
      i8: String(2n ** 62n),
      t: 'é"\\\n',
      b: Buffer.from([0, 255]),
      u: uuid,
      o: true,
      d: '1969-07-20',
      z: at,
      j: { a: [1] },
    })
    expect(Object.values(rows[1] ?? {}).every(value => value === null)).toBe(true)
  })

  it('writes tens of megabytes in bounded chunks', async () => {
    await db.query('create table t.blobs (n int, b bytea)')
    const rows = Array.from({ length: 40 }, (_, n) => [n, Buffer.alloc(1_000_000, n)] as const)
    const blobs = [
      { name: 'n', type: 'int4' },
      { name: 'b', type: 'bytea' },
    ] as const
    await db.transaction(async tx => await tx.copyBinary('t.blobs', blobs, rows))
    const [sum] = await db.query(
      'select count(*), sum(length(b))::int8 as bytes, bool_and(get_byte(b, 999999) = n) as same from t.blobs',
    )
    expect(sum).toEqual({ count: 40, bytes: 40_000_000, same: true })
  })

  it('rolls back a batch whose values cannot be encoded, naming row and column', async () => {
    const rows = Array.from({ length: 5_000 }, (_, n): CopyValue[] => [n === 4_999 ? 2 ** 40 : n])
    const copying = db.transaction(async tx => await tx.copyBinary('t.numbers', [{ name: 'n', type: 'int4' }], rows))
    await expect(copying).rejects.toMatchObject({ code: 'invalid_value', context: { row: 4_999, column: 'n' } })
    expect(await numbers()).toBe(0)
  })

  it('passes on what the server refuses, and the connection goes on', async () => {
    const lone = openDatabase({ url: test.adminUrl, applicationName: 'test', maxConnections: 1 })
    const copying = lone.transaction(
      async tx => await tx.copyBinary('t.numbers', [{ name: 'n', type: 'int4' }], [[1], [2], [1]]),
    )
    await expect(copying).rejects.toMatchObject({ context: { sqlState: '23505' } })
    const missing = lone.transaction(async tx => await tx.copyBinary('t.nothing', [{ name: 'n', type: 'int4' }], [[1]]))
    await expect(missing).rejects.toMatchObject({ context: { sqlState: '42P01' } })
    await expect(lone.query('select count(*) from t.numbers')).resolves.toEqual([{ count: 0 }])
    await lone.close()
  })

  it('does nothing for no rows and refuses names that are no identifiers', async () => {
    await db.transaction(async tx => {
      expect(await tx.copyBinary('t.numbers', [{ name: 'n', type: 'int4' }], [])).toBe(0)
      await expect(
        tx.copyBinary('t.numbers; drop table t.numbers', [{ name: 'n', type: 'int4' }], [[1]]),
      ).rejects.toMatchObject({
        code: 'invalid_value',
      })
    })
  })
})

async function until(holds: () => Promise<boolean>, limitMs = 10_000): Promise<void> {
  const endMs = Date.now() + limitMs
  while (!(await holds())) {
    if (Date.now() > endMs) throw new Error(`waited ${limitMs} ms for: ${holds.toString()}`)
    await new Promise(resolve => {
      setTimeout(resolve, 50)
    })
  }
}

async function terminate(application: string, state: string): Promise<number> {
  const rows = await db.query(
    'select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1 and state = $2',
    [application, state],
  )
  return rows.length
}

async function sessions(application: string): Promise<number> {
  return (await db.query('select from pg_stat_activity where application_name = $1', [application])).length
}

/** A proxy before Postgres that can stop passing bytes on while it keeps its connections open. */
async function silentProxy(
  target: string,
): Promise<{ url: string; silence(): void; speak(): void; close(): Promise<void> }> {
  const to = new URL(target)
  let silent = false
  const sockets = new Set<Socket>()
  const { connect } = await import('node:net')
  const server = createServer(client => {
    const upstream = connect(Number(to.port), to.hostname)
    sockets.add(client).add(upstream)
    for (const [from, into] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      from.on('data', bytes => {
        if (!silent) into.write(bytes)
      })
      from.on('close', () => into.destroy())
      from.on('error', () => into.destroy())
    }
  })
  await new Promise<void>(resolve => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const address = server.address()
  const url = new URL(target)
  url.host = `127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`
  return {
    url: url.href,
    silence: () => {
      silent = true
    },
    speak: () => {
      silent = false
    },
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise<void>(resolve => {
        server.close(() => resolve())
      })
    },
  }
}
