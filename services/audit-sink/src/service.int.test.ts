import { agentTopic, topicNames, type Clock, type Log, type OutRecord } from '@weir/core'
import { createCodec, createSimulatedBroker, SimulatedCluster, sleepUnlessAborted, type Codec } from '@weir/kafka'
import { openDatabase, type Database } from '@weir/postgres'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/support/database.ts'
import { quietLog, stackUrls } from '../../../test/support/system.ts'
import { until } from '../../../test/support/until.ts'
import { createAuditStore } from './adapters/postgres-audit-store.ts'
import type { SinkMetrics } from './metrics.ts'
import { AuditSink } from './service.ts'

const topics = topicNames('weir.')
const discoverEveryMs = 15_001

let test: TestDatabase
let admin: Database
let sinkDb: Database
let decoder: Codec
let cluster: SimulatedCluster
let alarms: string[]
let shiftMs: number
/** One per test: simulated log ids follow from the topic's name, and the tests share a database. */
let billing: string
let testCount = 0
let turn: { readonly sink: AuditSink; stop(): Promise<void> } | null

const clock: Clock = { nowMs: () => Date.now() + shiftMs }
const metrics: SinkMetrics = {
  landed: () => undefined,
  landing: () => undefined,
  lag: () => undefined,
  lagSeconds: () => undefined,
  gap: () => undefined,
  partitionsAhead: () => undefined,
}
const log: Log = {
  ...quietLog,
  error: (context: object) => void alarms.push(String((context as { readonly alarm?: string }).alarm)),
}

beforeAll(async () => {
  test = await createTestDatabase()
  decoder = await createCodec({ registryUrl: stackUrls().WEIR_SCHEMA_REGISTRY_URL, log: quietLog })
  admin = openDatabase({ url: test.adminUrl, applicationName: 'weir tests', maxConnections: 1 })
  sinkDb = openDatabase({ url: test.urls.audit_sink, applicationName: 'weir tests', maxConnections: 2 })
})
afterAll(async () => {
  await sinkDb.close()
  await admin.close()
  await test.drop()
})
beforeEach(() => {
  cluster = new SimulatedCluster()
  billing = agentTopic(topics, `billing-${testCount++}`)
  alarms = []
  shiftMs = 0
  turn = null
})
afterEach(async () => await turn?.stop())

function start(audited: readonly string[]): AuditSink {
  const abort = new AbortController()
  const store = createAuditStore(sinkDb, () => undefined)
  const broker = createSimulatedBroker({ cluster })
  const sleep = sleepUnlessAborted
  const sink = new AuditSink({
    topics,
    audited,
    broker,
    store,
    decoder,
    clock,
    log,
    metrics,
    faultPoint: () => undefined,
    sleep,
  })
  const done = sink.run(abort.signal)
  turn = {
    sink,
    stop: async () => {
      abort.abort()
      await done
    },
  }
  return sink
}

async function publish(topic: string, texts: readonly string[]): Promise<void> {
  const publisher = await createSimulatedBroker({ cluster }).openPublisher()
  const records = texts.map((text): OutRecord => {
    return { topic, partition: 0, key: null, value: Buffer.from(text), headers: [] }
  })
  await publisher.publish(records)
  await publisher.close()
}

/** What the store holds of the cluster's present and former logs, in log order. */
async function landed(logIds: readonly string[]): Promise<{ log: number; offset: number; text: string }[]> {
  const rows = await admin.query<{ log_id: string; offset: number; value: Buffer }>(
    'select log_id, "offset", value from audit.message where log_id = any ($1::uuid[]) order by leaf_index',
    [logIds],
  )
  return rows.map(row => ({ log: logIds.indexOf(row.log_id), offset: row.offset, text: row.value.toString() }))
}

const logId = (topic: string): string => cluster.topic(topic)?.logId ?? ''

describe('a topic created again while the sink runs', () => {
  it.each([
    { name: 'and shorter than the old log', later: ['new 0'] },
    { name: 'and longer than the old log', later: ['new 0', 'new 1', 'new 2', 'new 3'] },
  ])('is a new log, landed from its first offset, never as the old one: $name', async ({ later }) => {
    cluster.createTopic({ topic: billing, partitions: 1 })
    const sink = start([billing])
    const before = logId(billing)
    await publish(billing, ['old 0', 'old 1'])
    await until('the first log to land', async () => (await landed([before])).length === 2)

    cluster.recreateTopic({ topic: billing, partitions: 1 })
    const after = logId(billing)
    await publish(billing, later)
    shiftMs += discoverEveryMs
    const wanted = later.map((text, offset) => ({ log: 1, offset, text }))
    await until('the new log to land', async () => (await landed([before, after])).length >= 2 + wanted.length, 10_000)
    await publish(billing, ['new last'])
    const last = { log: 1, offset: wanted.length, text: 'new last' }
    await until('the next message to land', async () =>
      (await landed([before, after])).some(row => row.text === last.text),
    )
    expect(await landed([before, after])).toEqual([
      { log: 0, offset: 0, text: 'old 0' },
      { log: 0, offset: 1, text: 'old 1' },
      ...wanted,
      last,
    ])
    expect(alarms).toEqual(['log_changed'])
    expect(sink.ready()).toBeNull()
  })
})

describe('a log the sink cannot go on in', () => {
  it.each([
    {
      name: 'that begins above the next offset',
      logStart: 5,
      alarm: 'coverage_gap',
      says: /offset 2 is next.*begins at offset 5/,
    },
    {
      name: 'that ends below it',
      logStart: null,
      alarm: 'log_truncated',
      says: /ends at offset 0, but 2 was reached before/,
    },
  ])('stops alone, naming both offsets: $name', async ({ logStart, alarm, says }) => {
    const other = `${billing}-other`
    for (const topic of [billing, other]) cluster.createTopic({ topic, partitions: 1 })
    const [stuck, going] = [logId(billing), logId(other)]
    start([billing, other])
    await publish(billing, ['0', '1'])
    await until('two messages to land', async () => (await landed([stuck])).length === 2)
    await turn?.stop()

    if (logStart === null) cluster = restored([billing, other])
    else {
      await publish(billing, ['2', '3', '4', '5'])
      cluster.log({ topic: billing, partition: 0 }).removeBelow(logStart)
    }
    expect([logId(billing), logId(other)]).toEqual([stuck, going])
    const sink = start([billing, other])
    await publish(other, ['flows'])
    await until('the other log to land', async () => (await landed([going])).length === 1)
    await until('the stop to show', () => Promise.resolve(sink.ready() !== null))
    expect(sink.ready()).toMatch(says)
    expect(alarms).toEqual([alarm])
    expect(await landed([stuck])).toHaveLength(2)
  })
})

describe('the topic of an agent that is no longer configured', () => {
  it('lands to its end', async () => {
    const left = `${billing}-left`
    for (const topic of [billing, left]) cluster.createTopic({ topic, partitions: 1 })
    start([billing, left])
    await publish(left, ['0'])
    await until('the first message to land', async () => (await landed([logId(left)])).length === 1)
    await turn?.stop()
    await publish(left, ['1'])
    start([billing])
    await until('the last message to land', async () => (await landed([logId(left)])).length === 2)
    expect((await landed([logId(left)])).map(row => row.text)).toEqual(['0', '1'])
  })
})

/** The cluster as it was before any message: same log ids, empty logs. */
function restored(names: readonly string[]): SimulatedCluster {
  const older = new SimulatedCluster()
  for (const topic of names) older.createTopic({ topic, partitions: 1 })
  return older
}
