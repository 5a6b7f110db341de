import { randomUUID } from 'node:crypto'
import { topicNames, type LogRecord, type Ownership } from '@weir/core'
import { createCodec, type Codec } from '@weir/kafka'
import { openDatabase, serviceRoles, type Database } from '@weir/postgres'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../../test/support/database.ts'
import { quietLog, stackUrls } from '../../../../test/support/system.ts'
import { unpackHeaders } from '../domain/columns.ts'
import { describeRecord } from '../domain/describe-record.ts'
import type { AuditStore, LandingPart, LogProgress } from '../ports.ts'
import { createAuditStore } from './postgres-audit-store.ts'

const topics = topicNames()
let test: TestDatabase
let admin: Database
let sink: Database
let store: AuditStore
let decoder: Codec
let ownership: Ownership
let broken: string | null = null

const logOf = (topic: string): LogProgress => ({ topic, logId: randomUUID(), partition: 0, nextOffset: 0 })

/** One part that covers the offsets from `from` on, one record each. */
async function partOf(log: LogProgress, from: number, records: readonly Partial<LogRecord>[]): Promise<LandingPart> {
  const rows = await Promise.all(
    records.map(async (change, i) => {
      const record: LogRecord = {
        topic: log.topic,
        partition: log.partition,
        offset: from + i,
        timestampMs: 1_700_000_000_000,
        key: null,
        value: null,
        headers: [],
        ...change,
      }
      return { record, columns: await describeRecord(topics, decoder, record) }
    }),
  )
  return { log: { ...log, nextOffset: from }, nextOffset: from + records.length, rows }
}

const count = async (): Promise<number> =>
  (await admin.query<{ n: number }>('select count(*)::int as n from audit.message'))[0]?.n ?? -1

beforeAll(async () => {
  test = await createTestDatabase()
  decoder = await createCodec({ registryUrl: stackUrls().WEIR_SCHEMA_REGISTRY_URL, log: quietLog })
  admin = openDatabase({ url: test.adminUrl, applicationName: 'weir tests', maxConnections: 1 })
  sink = openDatabase({ url: test.urls.audit_sink, applicationName: 'weir tests', maxConnections: 2 })
  store = createAuditStore(sink, name => {
    if (name === broken) throw new Error(`stopped at ${name}`)
  })
  await store.ensurePartitions(7)
  ownership = await store.takeOver()
})

afterAll(async () => {
  await sink.close()
  await admin.close()
  await test.drop()
})

describe('the audit store', () => {
  it('has a partition for today and each of the seven days ahead, also when asked again', async () => {
    expect(await store.ensurePartitions(7)).toBe(8)
  })

  it('lands hostile records byte for byte, whatever their topic', async () => {
    const hostile: Partial<LogRecord>[] = [
      { value: null },
      { value: Buffer.alloc(0) },
      { value: Buffer.from('00ff00ff', 'hex'), key: Buffer.from([0]) },
      { value: Buffer.from('007fffffff00', 'hex') },
      { value: Buffer.alloc(5_000_000, 0xc3) },
      {
        headers: [
          ['ce_type', Buffer.from('a\u0000b')],
          ['ce_type', Buffer.from([0xff, 0xfe])],
          ['', Buffer.alloc(0)],
        ],
      },
      { headers: [['traceparent', Buffer.from('00-\u0000-' + 'b'.repeat(5_000))]] },
    ]
    for (const topic of [topics.raw, topics.decisions, topics.parked, topics.control, `${topics.agentPrefix}triage`]) {
      const log = logOf(topic)
      await store.begin(log)
      const part = await partOf(log, 0, hostile)
      expect(await store.land(ownership, [part])).toBe(true)
      const stored = await admin.query<{ key: Buffer | null; value: Buffer | null; headers: Buffer }>(
        'select key, value, headers from audit.message where log_id = $1 order by leaf_index',
        [log.logId],
      )
      const sent = part.rows.map(({ record }) => record)
      expect(stored.map(row => row.key)).toEqual(sent.map(record => record.key))
      expect(stored.map(row => unpackHeaders(row.headers))).toEqual(sent.map(record => record.headers))
      // One by one with equals: a difference in 5 MB must not be printed.
      const same = stored.map(
        (row, i) => row.value?.equals(sent[i]?.value ?? Buffer.from('none')) ?? sent[i]?.value === null,
      )
      expect(same).toEqual(hostile.map(() => true))
    }
  })

  it('numbers leaves without a hole and writes nothing of a landing that fails', async () => {
    const log = logOf(topics.raw)
    await store.begin(log)
    const part = await partOf(log, 0, [{}, {}])
    const before = await count()
    for (const point of ['audit.before-copy', 'audit.before-commit']) {
      broken = point
      await expect(store.land(ownership, [part])).rejects.toThrow(point)
      expect(await count()).toBe(before)
    }
    broken = null
    expect(await store.land(ownership, [part])).toBe(true)
    const [leaves] = await admin.query<{ n: number; last: number; size: number }>(
      'select count(*)::int as n, max(leaf_index) as last, (select size from audit.head) as size from audit.message',
    )
    expect(leaves).toEqual({ n: before + 2, last: before + 1, size: before + 2 })
  })

  it('refuses a part that was landed before or that leaves offsets out', async () => {
    const log = logOf(topics.raw)
    await store.begin(log)
    await store.land(ownership, [await partOf(log, 0, [{}, {}])])
    const before = await count()
    for (const from of [0, 1, 3]) {
      const part = await partOf(log, from, [{}])
      await expect(store.land(ownership, [part])).rejects.toMatchObject({ code: 'coverage_gap' })
    }
    expect(await count()).toBe(before)
  })

  it('refuses the former writer', async () => {
    const log = logOf(topics.raw)
    await store.begin(log)
    const former = ownership
    ownership = await store.takeOver()
    const part = await partOf(log, 0, [{}])
    expect(await store.land(former, [part])).toBe(false)
    expect(await store.land(ownership, [part])).toBe(true)
  })
})

describe('what has landed', () => {
  const changes = (table: string): string[] => [
    `update ${table} set kind = 'x'`,
    `delete from ${table}`,
    `truncate ${table}`,
  ]

  it('cannot be changed by any service, nor by the owner without taking the guards away', async () => {
    const [day] = await admin.query<{ name: string }>(
      `select 'audit.message_' || to_char(now() at time zone 'UTC', 'YYYYMMDD') as name`,
    )
    const statements = ['audit.message', day?.name ?? ''].flatMap(changes)
    const before = await count()
    for (const url of [test.adminUrl, ...serviceRoles.map(role => test.urls[role])]) {
      const db = openDatabase({ url, applicationName: 'weir tests', maxConnections: 1 })
      try {
        for (const sql of statements) {
          // Read-only by default is a setting that the reader can change: its rights must refuse as well.
          const change = db.transaction(async tx => {
            await tx.query('set transaction read write')
            await tx.query(sql)
          })
          await expect(change).rejects.toThrow(/append-only|permission denied/)
        }
      } finally {
        await db.close()
      }
    }
    expect(await count()).toBe(before)
  })
})
