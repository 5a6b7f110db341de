import { randomUUID } from 'node:crypto'
import { sha256 } from '@weir/core'
import { openDatabase, type Database } from '@weir/postgres'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/support/database.ts'
import { createAuditQueries } from './adapters/postgres-audit-queries.ts'
import { packHeaders } from './domain/columns.ts'
import { questionsFor, type QuestionName } from './domain/question.ts'
import type { AuditQueries, TenantScope } from './ports.ts'
import { answerWhy, type Why } from './service/why.ts'

let test: TestDatabase
let admin: Database
let reader: Database
let queries: AuditQueries
let leaf = 0

beforeAll(async () => {
  test = await createTestDatabase()
  admin = openDatabase({ url: test.adminUrl, applicationName: 'weir tests', maxConnections: 1 })
  reader = openDatabase({ url: test.urls.audit_reader, applicationName: 'weir tests', maxConnections: 2 })
  queries = createAuditQueries(reader)
  await admin.query('select audit.ensure_partitions(7)')
})
afterAll(async () => {
  await reader.close()
  await admin.close()
  await test.drop()
})

interface Row {
  readonly kind: string
  readonly event?: string
  readonly tenant?: string
  readonly subject?: string
  readonly run?: string
  readonly cause?: string
  readonly root?: string
  readonly decision?: string
  readonly verdict?: string
  readonly agent?: string
  readonly detail?: string
}

/** Puts `times` equal messages at the end of the store. */
async function put(row: Row, times = 1): Promise<void> {
  const { kind, event = null, tenant = 'acme', subject, run, cause, root, decision, verdict, agent, detail } = row
  await admin.query(
    `insert into audit.message (leaf_index, log_date, kind, topic, log_id, partition, "offset", timestamp_ms, headers, tenant, source,
       event_key, event_key_text, subject, run, cause, root_event, decision_id, verdict, agent, detail, type, copies)
     select $1::bigint + g, (now() at time zone 'UTC')::date, $2, 'weir.test', '00000000-0000-7000-8000-000000000001', 0,
       $1::bigint + g, 1700000000000, $3, $4, 'shop', $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 'order.paid', 1
     from generate_series(0, $15::int - 1) g`,
    [
      leaf,
      kind,
      packHeaders([]),
      tenant,
      event === null ? null : sha256(event),
      event,
      subject ?? null,
      run ?? null,
      cause ?? null,
      root ?? null,
      decision ?? null,
      verdict ?? null,
      agent ?? null,
      detail ?? null,
      times,
    ],
  )
  leaf += times
}

async function ask(name: QuestionName | 'any', value: string, scope: TenantScope = null): Promise<Why> {
  const asked = questionsFor(name, value)
  const answer = 'fault' in asked ? null : await answerWhy(queries, asked, scope)
  if (answer === null) throw new Error(`nothing is known about ${value}`)
  return answer
}

const tail = (sentences: readonly string[]): string[] =>
  sentences.map(sentence => sentence.slice('2023-11-14 22:13:20.000Z '.length))

describe('why', () => {
  it('tells a storm of 30,000 repeats to its end, and each outcome that followed', async () => {
    const storm = { event: 'storm', subject: 'stormed' }
    const duplicate = { ...storm, kind: 'verdict', verdict: 'dedup:duplicate' }
    await put({ ...storm, kind: 'received', detail: 'verified with main, key from header' }, 10_000)
    await put({ ...storm, kind: 'verdict', verdict: 'dedup:admitted' })
    await put({ ...duplicate, detail: 'the event key was won by delivery d before' }, 9_998)
    await put({ ...duplicate, detail: 'the event key was won by delivery d before; another payload' })
    await put({ ...storm, kind: 'receipt', verdict: 'accepted', detail: 'answered 202 ok; more' }, 10_000)
    await put({ ...storm, kind: 'verdict', verdict: 'policy:deny', agent: 'billing', detail: 'too much' })
    const answer = await ask('key', 'storm')
    expect(answer).toMatchObject({ complete: true, moreEvents: false })
    expect(tail(answer.sentences)).toEqual([
      'order.paid about stormed arrived for tenant acme through shop as delivery ? (verified with main, key from header); it arrived 10000 times in all.',
      'dedup let it through as the first of its key.',
      'dedup dropped 9998 deliveries as duplicates: the event key was won by delivery d before.',
      'dedup dropped a delivery as a duplicate: the event key was won by delivery d before; another payload.',
      'the sender was answered 202 ok; more (10000 times).',
      'policy denied it for agent billing: too much.',
    ])
    // So many messages of one subject are not all searched: whether there are older events is not known then, and said to be possible.
    expect(await ask('subject', 'stormed')).toMatchObject({ sentences: answer.sentences, moreEvents: true })
  })

  it('tells the other events of a subject beside one that was stormed, and says when there are more', async () => {
    await put({ kind: 'received', event: 'calm', subject: 'shared' })
    await put({ kind: 'received', event: 'wild', subject: 'shared' }, 3_000)
    expect((await ask('subject', 'shared')).events.map(event => event.eventKeyText)).toEqual(['wild', 'calm'])
    for (let i = 0; i < 19; i++) await put({ kind: 'received', event: `more-${i}`, subject: 'shared' })
    const answer = await ask('subject', 'shared')
    expect(answer.events).toHaveLength(20)
    expect(answer.moreEvents).toBe(true)
  })

  it('follows causes back, also over a decision, and forward to what they led to', async () => {
    const decision = randomUUID()
    await put({ kind: 'received', event: 'first' })
    await put({ kind: 'verdict', event: 'first', verdict: 'policy:allow', agent: 'triage', decision })
    await put({ kind: 'received', event: 'second', cause: decision, root: 'first' })
    await put({ kind: 'received', event: 'third', cause: 'second', root: 'first' })
    const linked = async (key: string) =>
      (await ask('key', key)).related.map(({ relation, eventKeyText }) => [relation, eventKeyText])
    expect(await linked('second')).toEqual([
      ['led_to_it', 'first'],
      ['followed', 'third'],
    ])
    expect(await linked('first')).toEqual([
      ['followed', 'third'],
      ['followed', 'second'],
    ])
    expect((await ask('decision', decision)).events.map(event => event.eventKeyText)).toEqual(['first'])
  })

  it('ends on causes that go in a circle', async () => {
    await put({ kind: 'received', event: 'hen', cause: 'egg' })
    await put({ kind: 'received', event: 'egg', cause: 'hen' })
    expect((await ask('key', 'hen')).related.map(event => event.eventKeyText)).toEqual(['egg'])
  })

  it('tells of an action that no event began, by its decision and by its run', async () => {
    const decision = randomUUID()
    const action = { decision, run: 'run-9', agent: 'ops', detail: 'restart at cluster-1' }
    await put({ ...action, kind: 'action_intent' })
    await put({ ...action, kind: 'action_result', verdict: 'ok' })
    const wanted = [
      'agent ops was about to call restart at cluster-1.',
      'the call of agent ops ended ok: restart at cluster-1.',
    ]
    expect(tail((await ask('decision', decision)).sentences)).toEqual(wanted)
    expect(tail((await ask('any', 'run-9')).sentences)).toEqual(wanted)
  })

  it('shows an analyst nothing of another tenant, neither asked for nor linked', async () => {
    await put({ kind: 'received', event: 'theirs', tenant: 'globex', subject: 'both' })
    await put({ kind: 'received', event: 'ours', subject: 'both', cause: 'theirs' })
    const answer = await ask('subject', 'both', ['acme'])
    expect(answer.events.map(event => event.eventKeyText)).toEqual(['ours'])
    expect(answer.related).toEqual([])
    await expect(ask('key', 'theirs', ['acme'])).rejects.toThrow('nothing is known')
  })
})

describe('the analysts’ views', () => {
  it('give a page in the order of an index, without reading the store', async () => {
    await admin.query('analyze audit.message')
    const plan = await reader.query<{ 'QUERY PLAN': string }>(
      'explain select leaf_index from audit.messages where leaf_index > 5 order by leaf_index limit 100',
    )
    const text = plan.map(row => row['QUERY PLAN']).join('\n')
    expect(text).toContain('Merge Append')
    expect(text).not.toMatch(/Seq Scan|Sort Method|-> {2}Sort/)
  })

  it('read headers in SQL as they are: repeated names, binary values, names that are no text', async () => {
    const packed = packHeaders([
      ['twice', Buffer.from('a')],
      ['twice', Buffer.from([0xff, 0x00])],
      ['nul\u0000', Buffer.alloc(0)],
      ['', Buffer.from('long'.repeat(100))],
    ])
    const rows = await reader.query<{ ordinal: number; name: string; value: Buffer }>(
      'select * from audit.headers($1)',
      [packed],
    )
    expect(rows).toEqual([
      { ordinal: 1, name: 'twice', value: Buffer.from('a') },
      { ordinal: 2, name: 'twice', value: Buffer.from([0xff, 0x00]) },
      { ordinal: 3, name: 'nul\\000', value: Buffer.alloc(0) },
      { ordinal: 4, name: '', value: Buffer.from('long'.repeat(100)) },
    ])
    expect(await reader.query('select * from audit.headers($1)', [packHeaders([])])).toEqual([])
  })
})
