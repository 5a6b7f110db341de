import { readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { agentTopic, orderingKeyText, partitionOf } from '@weir/core'
import type { Decision } from '@weir/schemas'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { dumpLog, type DumpedRecord } from '../support/log-dump.ts'
import { rawEvent } from '../support/raw-event.ts'
import { publishRaw, untilRead } from '../support/raw-events.ts'
import { flushRedis } from '../support/redis.ts'
import { startTestSystem, type TestSystem } from '../support/system.ts'
import { until } from '../support/until.ts'

const partitions = 3
let test: TestSystem

beforeAll(async () => {
  // The example configuration with a ceiling of 50 steps a run.
  const example = readFileSync(fileURLToPath(new URL('../../weir.yaml', import.meta.url)), 'utf8')
  const configFile = join(tmpdir(), `weir-pipeline-${process.pid}.yaml`)
  writeFileSync(
    configFile,
    example.replace(
      'run-steps: { kind: ceiling, scope: run, limit: 10,',
      'run-steps: { kind: ceiling, scope: run, limit: 50,',
    ),
  )
  test = await startTestSystem({ partitions, configFile })
})
afterEach(async () => await test.system.stop())
afterAll(async () => await test.end())

const ids = (name: string, count: number): string[] => Array.from({ length: count }, (_, i) => `${name}-${i}`)
const brokers = (): string => test.urls.WEIR_KAFKA_BROKERS

async function untilJudged(): Promise<void> {
  const { topicPrefix } = test.system.options
  await untilRead(test, `${topicPrefix}dedup`, test.topics.raw)
  await untilRead(test, `${topicPrefix}policy`, test.topics.events)
}

/** What the billing agent got, in the order of each partition, as Kafka's own client reads it. */
async function billing(): Promise<DumpedRecord[]> {
  return await dumpLog(brokers(), [agentTopic(test.topics, 'billing')])
}

function eventIdOf(record: DumpedRecord): string {
  return (JSON.parse(record.value?.toString('utf8') ?? '{}') as { eventId?: string }).eventId ?? ''
}

async function policyDecisions(): Promise<Decision[]> {
  const found: Decision[] = []
  for (const record of await dumpLog(brokers(), [test.topics.decisions])) {
    const decoded = await test.codec.decode('Decision', record.value)
    if (decoded.kind === 'ok' && decoded.value.stage === 'policy') found.push(decoded.value)
  }
  return found
}

describe('caches', () => {
  it('do not matter: with Redis and the dedup state topic emptied in mid-stream, each event arrives once', async () => {
    await test.system.startServices(['dedup', 'policy'])
    const sent = ids('cache', 300)
    await publishRaw(
      test,
      sent.map(id => rawEvent(id, 1)),
    )
    await flushRedis(test.urls.REDIS_URL)
    await emptyStateTopic()
    await publishRaw(
      test,
      sent.map(id => rawEvent(id, 2)),
    )
    await flushRedis(test.urls.REDIS_URL)
    await publishRaw(
      test,
      sent.map(id => rawEvent(id, 3)),
    )
    await untilJudged()
    const counts = new Map<string, number>()
    for (const record of await billing()) counts.set(eventIdOf(record), (counts.get(eventIdOf(record)) ?? 0) + 1)
    expect(sent.filter(id => counts.get(id) !== 1)).toEqual([])
  })
})

async function emptyStateTopic(): Promise<void> {
  // Loaded here: packages/kafka must have patched it first.
  const { default: kafkajs } = await import('kafkajs')
  const admin = new kafkajs.Kafka({ brokers: brokers().split(','), logLevel: kafkajs.logLevel.NOTHING }).admin()
  await admin.connect()
  const topic = test.topics.dedupState
  // Makes the client learn where the topic is.
  await admin.fetchTopicOffsets(topic)
  await admin.deleteTopicRecords({
    topic,
    partitions: Array.from({ length: partitions }, (_, partition) => ({ partition, offset: '-1' })),
  })
  await admin.disconnect()
}

describe('budgets', () => {
  it('allows exactly 50 of 200 events at once from two policy instances, and names the rule for the 150 denied', async () => {
    await test.system.start('dedup')
    await Promise.all([test.system.start('policy'), test.system.start('policy', { instance: 'policy-2' })])
    await publishRaw(
      test,
      ids('ceiling', 200).map(id => rawEvent(id, 1, { run: 'run-ceiling' })),
    )
    await untilJudged()
    const verdicts = (await policyDecisions()).filter(decision => decision.run === 'run-ceiling')
    const denied = verdicts.filter(decision => decision.verdict === 'deny')
    expect([verdicts.filter(decision => decision.verdict === 'allow').length, denied.length]).toEqual([50, 150])
    expect(new Set(denied.map(decision => decision.reasons[0]?.rule))).toEqual(new Set(['run-steps']))
    const delivered = (await billing()).filter(record => eventIdOf(record).startsWith('ceiling-'))
    expect(new Set(delivered.map(eventIdOf)).size).toBe(50)
    expect(delivered).toHaveLength(50)
  })
})

describe('policy, killed at a named point and started again', () => {
  it.each(['policy.before-claim', 'policy.after-claim', 'policy.in-transaction', 'policy.after-commit'])(
    'delivers each event once after SIGKILL at %s',
    async point => {
      await test.system.start('dedup')
      const sent = ids(point, 60)
      await publishRaw(
        test,
        sent.map(id => rawEvent(id, 1)),
      )
      await test.system.start('policy', { untilReady: false, env: { WEIR_FAULT_POINT: `${point}:2` } })
      await test.system.supervisor.gone('policy', 60_000)
      await test.system.start('policy', { untilReady: false })
      await untilJudged()
      const counts = new Map<string, number>()
      for (const id of (await billing()).map(eventIdOf)) counts.set(id, (counts.get(id) ?? 0) + 1)
      expect(sent.filter(id => counts.get(id) !== 1)).toEqual([])
    },
  )
})

describe('order', () => {
  it('keeps two events of one entity in order while one dedup partition is held up, and the others go on', async () => {
    await test.system.startServices(['dedup', 'policy'])
    const orderingKey = orderingKeyText('acme', 'order-held')
    const held = partitionOf(orderingKey, partitions)
    const entity = ids('held', 20).map(id => rawEvent(id, 1, { orderingKey, object: 'order-held' }))
    const others = ids('free', 60).map(id => rawEvent(id, 1))
    const free = others.filter(event => partitionOf(event.orderingKey, partitions) !== held)
    await test.db.transaction(async tx => {
      await tx.query(`select from weir.owner where stage = 'dedup' and partition = $1 for update`, [held])
      await publishRaw(test, entity.slice(0, 10))
      await publishRaw(test, others)
      await publishRaw(test, entity.slice(10))
      await until(
        'the free partitions to go on',
        async () => {
          await tx.query('select 1')
          const arrived = new Set((await billing()).map(eventIdOf))
          return free.every(event => arrived.has(event.eventId))
        },
        8_000,
      )
    })
    await untilJudged()
    const arrived = (await billing()).map(eventIdOf).filter(id => id.startsWith('held-'))
    expect(arrived).toEqual(entity.map(event => event.eventId))
  })
})
