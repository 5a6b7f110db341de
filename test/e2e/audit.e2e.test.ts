import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { agentTopic } from '@weir/core'
import { openDatabase, serviceRoles } from '@weir/postgres'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { dumpLog } from '../support/log-dump.ts'
import { rawEvent } from '../support/raw-event.ts'
import { publish, publishRaw, untilRead } from '../support/raw-events.ts'
import { startTestSystem, type TestSystem } from '../support/system.ts'
import { until } from '../support/until.ts'

let test: TestSystem
beforeAll(async () => {
  test = await startTestSystem({ partitions: 3 })
})
afterEach(async () => await test.system.stop())
afterAll(async () => await test.end())

const ids = (name: string, count: number): string[] => Array.from({ length: count }, (_, i) => `${name}-${i}`)

function auditedTopics(): string[] {
  const { raw, receipts, events, decisions, released, outcomes, actions, parked, control } = test.topics
  const agents = ['triage', 'billing', 'watch', 'ops'].map(agent => agentTopic(test.topics, agent))
  return [raw, receipts, events, decisions, released, outcomes, actions, parked, control, ...agents]
}

/** Waits until the store holds exactly the messages that Kafka's own client finds in the topics, then compares them all. */
async function expectComplete(): Promise<void> {
  const dumped = await dumpLog(test.urls.WEIR_KAFKA_BROKERS, auditedTopics())
  const place = (topic: string, partition: number, offset: number): string => `${topic} ${partition} ${offset}`
  await until('the store to hold every message', async () => (await count()) >= dumped.length)
  const rows = await test.db.query<{ topic: string; partition: number; offset: number; value: Buffer | null }>(
    'select topic, partition, "offset", value from audit.message order by leaf_index',
  )
  expect(rows.length).toBe(dumped.length)
  const stored = new Map(rows.map(row => [place(row.topic, row.partition, row.offset), row.value]))
  const wrong = dumped.filter(record => {
    const value = stored.get(place(record.topic, record.partition, record.offset))
    return value === undefined || !(record.value === null ? value === null : value?.equals(record.value))
  })
  expect(wrong.map(record => place(record.topic, record.partition, record.offset))).toEqual([])
  const [leaves] = await test.db.query<{ n: number; low: number; high: number }>(
    'select count(distinct leaf_index)::int as n, min(leaf_index) as low, max(leaf_index) as high from audit.message',
  )
  expect(leaves).toEqual({ n: rows.length, low: 0, high: rows.length - 1 })
  expect(await gaps()).toEqual([])
}

async function count(): Promise<number> {
  const [row] = await test.db.query<{ n: number }>('select count(*)::int as n from audit.message')
  return row?.n ?? 0
}

/** Intervals that do not join the one before them, and positions that are not where the last interval ends. */
async function gaps(): Promise<unknown[]> {
  return await test.db.query(`
    select * from (
      select i.*, lag(next_offset) over (partition by log_id, partition order by start_offset) as before
      from audit.landed_interval i
    ) as joined
    where before is not null and before <> start_offset`)
}

describe('landing', () => {
  it('lands every message once, byte for byte, with hostile records among them', async () => {
    await test.system.startServices(['dedup', 'audit-sink'])
    const sent = ids('land', 300)
    await publishRaw(
      test,
      [...sent, ...sent].map((id, n) => rawEvent(id, n)),
    )
    const { receipts, parked } = test.topics
    const at = (topic: string, value: Buffer | null, headers: readonly (readonly [string, Buffer])[] = []) => {
      return { topic, partition: 0, key: null, value, headers }
    }
    await publish(test, [
      at(receipts, null),
      at(receipts, Buffer.from([0, 255, 0, 255])),
      at(receipts, Buffer.from('\u0000not avro\u0000')),
      at(parked, Buffer.alloc(1_500_000, 7), [['weir-parked-reason', Buffer.from([0xff, 0xfe, 0x00])]]),
      at(parked, Buffer.alloc(0), [
        ['twice', Buffer.from('a')],
        ['twice', Buffer.from('b')],
      ]),
      at(agentTopic(test.topics, 'billing'), Buffer.from('[1'.repeat(100_000))),
      at(agentTopic(test.topics, 'billing'), Buffer.alloc(0), [['ce_id', Buffer.from('x'.repeat(5_000))]]),
    ])
    await untilRead(test, `${test.system.options.topicPrefix}dedup`, test.topics.raw)
    await expectComplete()
  })

  it.each(['audit.before-copy', 'audit.before-commit', 'audit.after-commit'])(
    'neither loses nor doubles a message when killed at %s',
    async point => {
      await publishRaw(
        test,
        ids(point, 100).map((id, n) => rawEvent(id, n)),
      )
      await test.system.start('audit-sink', { untilReady: false, env: { WEIR_FAULT_POINT: point } })
      await test.system.supervisor.gone('audit-sink', 60_000)
      await test.system.start('audit-sink', { untilReady: false })
      await expectComplete()
    },
  )

  it('has one writer: a frozen one that wakes up writes nothing', async () => {
    await test.system.start('audit-sink')
    test.system.supervisor.signal('audit-sink', 'SIGSTOP')
    await publishRaw(
      test,
      ids('second', 100).map((id, n) => rawEvent(id, n)),
    )
    await test.system.start('audit-sink', { instance: 'audit-sink-2', untilReady: false })
    await expectComplete()
    test.system.supervisor.signal('audit-sink', 'SIGCONT')
    await publishRaw(
      test,
      ids('third', 100).map((id, n) => rawEvent(id, n)),
    )
    await expectComplete()
  })
})

describe('append-only', () => {
  it('refuses UPDATE, DELETE and TRUNCATE to every service role, on partitions too', async () => {
    const [partition] = await test.db.query<{ name: string }>(
      `select inhrelid::regclass::text as name from pg_inherits where inhparent = 'audit.message'::regclass limit 1`,
    )
    const tables = ['audit.message', partition?.name ?? '', 'audit.landed_interval']
    const allowed: string[] = []
    for (const role of serviceRoles) {
      const db = openDatabase({ url: test.system.logins[role], applicationName: 'weir-test', maxConnections: 1 })
      try {
        for (const table of tables) {
          for (const sql of [`update ${table} set partition = 0`, `delete from ${table}`, `truncate ${table}`]) {
            await db.query(sql).then(
              () => allowed.push(`${role}: ${sql}`),
              () => undefined,
            )
          }
        }
      } finally {
        await db.close()
      }
    }
    expect(tables[1]).toMatch(/^audit\.message_\d{8}$/)
    expect(allowed).toEqual([])
  })

  it('refuses them to the owner as well, replica mode included', async () => {
    const [partition] = await test.db.query<{ name: string }>(
      `select inhrelid::regclass::text as name from pg_inherits where inhparent = 'audit.message'::regclass
       and exists (select from audit.message m where m.tableoid = inhrelid) limit 1`,
    )
    for (const table of ['audit.message', partition?.name ?? '']) {
      for (const sql of [`update ${table} set partition = 0`, `delete from ${table}`, `truncate ${table}`]) {
        const attempt = test.db.transaction(async tx => {
          await tx.query('set local session_replication_role = replica')
          await tx.query(sql)
        })
        await expect(attempt).rejects.toThrow(/append-only/)
      }
    }
  })
})

describe('the analysts’ API', () => {
  const get = async (path: string, key = test.system.options.secrets.apiKeys.analyst) => {
    const response = await fetch(`${test.system.instance('audit-sink').httpUrl}${path}`, {
      headers: { authorization: `Bearer ${key}` },
    })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }

  const weirWhy = async (...args: string[]): Promise<{ code: number; out: string; err: string }> => {
    const env = {
      ...process.env,
      WEIR_AUDIT_URL: test.system.instance('audit-sink').httpUrl,
      WEIR_ANALYST_KEY: test.system.options.secrets.apiKeys.analyst,
    }
    const main = fileURLToPath(new URL('../../packages/cli/src/main.ts', import.meta.url))
    return await new Promise(resolve => {
      execFile(process.execPath, [main, 'why', ...args], { env }, (error, out, err) => {
        resolve({ code: error === null ? 0 : Number(error.code), out, err })
      })
    })
  }

  it('tells the story of an event by key, subject, delivery, decision and run', async () => {
    await test.system.startServices(['dedup', 'audit-sink'])
    const event = rawEvent('why-1', 1, { subject: 'acme/api', run: 'run-7' })
    await publishRaw(test, [event, rawEvent('why-1', 2, { subject: 'acme/api', run: 'run-7' })])
    const path = `/v1/why?key=${encodeURIComponent(event.eventKeyText)}`
    await until('the story to land', async () => String((await get(path)).body['sentences']).includes('duplicate'))
    const { body } = await get(path)
    const sentences = (body['sentences'] as string[]).map(sentence =>
      sentence.slice('2026-12-01 00:00:00.000Z '.length),
    )
    expect(sentences).toEqual([
      `order.paid about acme/api arrived for tenant acme through shop as delivery ${event.deliveryId} (verified with main, key from header); it arrived 2 times in all. It belongs to run run-7.`,
      'dedup let it through as the first of its key.',
      `dedup dropped a delivery as a duplicate: the event key was won by delivery ${event.deliveryId} before.`,
    ])
    for (const query of [
      'subject=acme/api',
      'run=run-7',
      `delivery=${event.deliveryId}`,
      `q=${event.eventKey.toString('hex')}`,
    ]) {
      expect((await get(`/v1/why?${query}`)).body['sentences']).toEqual(body['sentences'])
    }
  })

  it('is read by weir why: sentences and links for a terminal, JSON for programs, exit code 1 for what is unknown', async () => {
    await test.system.startServices(['dedup', 'audit-sink'])
    const first = rawEvent('cli-1', 1, { subject: 'red\u001b[31m' })
    await publishRaw(test, [first, rawEvent('cli-2', 2, { cause: first.eventKeyText })])
    const path = `/v1/why?key=${encodeURIComponent(first.eventKeyText)}`
    await until('its consequence to land', async () =>
      String(JSON.stringify((await get(path)).body['related'])).includes('dedup let'),
    )

    const told = await weirWhy(first.eventKeyText)
    expect(told.code).toBe(0)
    expect(told.out).toContain(`\n${first.eventKeyText}\n`)
    expect(told.out).toContain('dedup let it through as the first of its key.')
    expect(told.out).toContain('order.paid about red\\x1b[31m arrived')
    expect(told.out).toMatch(/What followed:\n\n.*cli-2/)
    expect(JSON.parse((await weirWhy(first.eventKeyText, '--json')).out)).toMatchObject({
      related: [{ relation: 'followed' }],
    })
    const unknown = await weirWhy('nobody-knows')
    expect(unknown).toMatchObject({ code: 1, out: '' })
    expect(unknown.err).toMatch(/nothing is known about "nobody-knows". The audit store holds \d+ messages/)
  })

  it('needs a key, and says what it does not know', async () => {
    await test.system.start('audit-sink')
    expect((await get('/v1/why?q=x', 'wrong')).status).toBe(401)
    expect((await get('/v1/why?q=nobody-knows')).status).toBe(404)
    expect((await get('/v1/why?delivery=no-uuid')).status).toBe(400)
    const { body } = await get('/v1/messages?limit=2')
    expect(body).toMatchObject({ complete: false, cursor: 1 })
  })
})
