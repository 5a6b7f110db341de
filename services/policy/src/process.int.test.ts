import { spawn, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { agentTopic, partitionOf, topicNames, type Broker, type LogRecord, type OutRecord } from '@weir/core'
import { connectBroker, createCodec, ensureTopics, pushSchemas, topicSpecs, type Codec } from '@weir/kafka'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase } from '../../../test/support/database.ts'
import { setting } from '../../../test/support/setting.ts'
import { until } from '../../../test/support/until.ts'
import { eventOf } from './adapters/testing/partition-bench.ts'

const partitions = 2
const agents = ['triage', 'billing', 'watch', 'ops', 'refunds']
const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => silent }

let broker: Broker
let codec: Codec
let running: ChildProcess | null = null

beforeAll(async () => {
  const connection = { brokers: setting('WEIR_KAFKA_BROKERS').split(','), clientId: 'policy-process-test', log: silent }
  broker = connectBroker(connection)
  await pushSchemas({ registryUrl: setting('WEIR_SCHEMA_REGISTRY_URL') })
  codec = await createCodec({ registryUrl: setting('WEIR_SCHEMA_REGISTRY_URL'), log: silent })
})

afterEach(async () => {
  if (running === null || running.exitCode !== null || running.signalCode !== null) return
  running.kill('SIGTERM')
  await once(running, 'exit')
})

afterAll(async () => {
  await broker.close()
})

/** Topics of one test, and with them the consumer group. */
async function newPrefix(): Promise<string> {
  const prefix = `pp${randomBytes(4).toString('hex')}.`
  const specs = topicSpecs(topicNames(prefix), { partitions, replicationFactor: 1, minInsyncReplicas: 1, agents })
  await ensureTopics({
    brokers: setting('WEIR_KAFKA_BROKERS').split(','),
    clientId: 'policy-process-test',
    log: silent,
    specs,
  })
  return prefix
}

function start(prefix: string, databaseUrl: string, env: Record<string, string> = {}): ChildProcess {
  const child = spawn(process.execPath, [fileURLToPath(new URL('./main.ts', import.meta.url))], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      PATH: process.env['PATH'],
      WEIR_KAFKA_BROKERS: setting('WEIR_KAFKA_BROKERS'),
      WEIR_SCHEMA_REGISTRY_URL: setting('WEIR_SCHEMA_REGISTRY_URL'),
      REDIS_URL: setting('REDIS_URL'),
      DATABASE_URL: databaseUrl,
      WEIR_TOPIC_PREFIX: prefix,
      WEIR_TOPIC_PARTITIONS: String(partitions),
      WEIR_CONFIG: fileURLToPath(new URL('../../../weir.yaml', import.meta.url)),
      WEIR_GROUP_SESSION_TIMEOUT_MS: '6000',
      WEIR_KEY_AGENT_REFUNDS_SHA256: 'a'.repeat(64),
      WEIR_HTTP_PORT: '0',
      ...env,
    },
  })
  running = child
  return child
}

async function readAll(topic: string): Promise<LogRecord[]> {
  const reader = await broker.openReader()
  const records: LogRecord[] = []
  for (let partition = 0; partition < partitions; partition++) {
    const { startOffset, endOffset } = await broker.admin.bounds({ topic, partition })
    for (let next = startOffset; next < endOffset;) {
      const fetched = await reader.fetch({ topic, partition, fromOffset: next })
      records.push(...fetched.records)
      if (fetched.nextOffset === next) break
      next = fetched.nextOffset
    }
  }
  await reader.close()
  return records
}

const subjectOf = (record: LogRecord): string =>
  record.headers.find(([name]) => name === 'ce_subject')?.[1].toString() ?? ''

/** Fifteen events over the burst of globex' rate: some pass at once, most are deferred. */
function burst(prefix: string): { readonly names: string[]; readonly records: OutRecord[] } {
  const names = Array.from({ length: 15 }, (_, i) => `event-${i}`)
  const records = names.map((name, i): OutRecord => {
    const event = eventOf(`${prefix}${name}`, {
      tenant: 'globex',
      source: 'globex-api',
      subject: name,
      object: `object-${i % 3}`,
    })
    const partition = partitionOf(event.orderingKey, partitions)
    const value = codec.encode('RawEvent', event)
    return { topic: topicNames(prefix).events, partition, key: Buffer.from(event.orderingKey), value, headers: [] }
  })
  return { names, records }
}

describe('policy as a process', () => {
  it.for([
    'policy.before-claim:2',
    'policy.in-transaction:2',
    // Between the claim and the emit of a release.
    'policy.after-claim.1:2',
    'policy.after-release-produced:1',
    'policy.before-waiting-delete:1',
  ])('killed at %s delivers each event once and in order after a restart', { timeout: 90_000 }, async fault => {
    const own = await createTestDatabase()
    try {
      const prefix = await newPrefix()
      const topic = agentTopic(topicNames(prefix), 'ops')
      const { names, records } = burst(prefix)
      const publisher = await broker.openPublisher()
      const doomed = start(prefix, own.urls.policy, { WEIR_FAULT_POINT: fault, WEIR_ALLOW_FAULTS: '1' })
      const died = once(doomed, 'exit')
      for (const record of records) await publisher.publish([record])
      await publisher.close()
      expect(await died).toEqual([null, 'SIGKILL'])
      const next = start(prefix, own.urls.policy)
      await until('all deliveries', async () => (await readAll(topic)).length >= names.length)
      next.kill('SIGTERM')
      expect(await once(next, 'exit')).toEqual([0, null])
      const delivered = (await readAll(topic)).map(subjectOf)
      expect(delivered.toSorted()).toEqual(names.toSorted())
      for (const object of [0, 1, 2]) {
        const mine = names.filter((_, i) => i % 3 === object)
        expect(delivered.filter(name => mine.includes(name))).toEqual(mine)
      }
    } finally {
      await own.drop()
    }
  })
})
