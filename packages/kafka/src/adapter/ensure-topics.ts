import { WeirError } from '@weir/core'
import type { Admin } from 'kafkajs'
import { loadKafkajs } from '../patches/load-kafkajs.ts'
import type { TopicSpec } from '../topic-specs.ts'
import type { BrokerOptions } from './broker-options.ts'
import { createKafka, openSocket, type ClientContext } from './client-settings.ts'
import { brokerError, isNamed, protocolType } from './kafkajs-errors.ts'
import { NodePool } from './node-pool.ts'
import { retrying } from './retrying.ts'
import { TopicDirectory, type TopicFacts } from './topic-directory.ts'

const creationTimeoutMs = 30_000
/** A topic just created may not be in every node's metadata yet. */
const seenRetry = { withinMs: 30_000, firstDelayMs: 50, maxDelayMs: 500 }

export interface EnsureTopicsOptions extends BrokerOptions {
  readonly specs: readonly TopicSpec[]
}

/**
 * Creates the topics that are missing, then compares all with their specs. Safe to run twice and at once from several processes.
 * Throws `topic_mismatch` that names every differing topic, setting, value and wanted value; nothing is changed in place.
 */
export async function ensureTopics(options: EnsureTopicsOptions): Promise<{ readonly created: readonly string[] }> {
  const log = options.log.child({ component: 'kafka' })
  const context: ClientContext = { client: loadKafkajs(), options, socketFactory: openSocket, log }
  const admin = createKafka(context).admin()
  const nodes = new NodePool(context)
  const directory = new TopicDirectory(nodes, () => Promise.resolve(admin))
  try {
    await admin.connect()
    const topics = options.specs.map(({ topic }) => topic)
    const before = await directory.facts(topics)
    const missing = options.specs.filter(({ topic }) => isMissing(before.get(topic)))
    if (missing.length > 0) await create(admin, missing)
    const facts = await factsOfAll(directory, topics)
    const settings = await directory.settings(topics)
    const faults = options.specs.flatMap(spec => compare(spec, facts.get(spec.topic), settings.get(spec.topic)))
    if (faults.length > 0) throw mismatch(faults)
    return { created: missing.map(({ topic }) => topic) }
  } catch (error) {
    throw brokerError('create the topics', error)
  } finally {
    await Promise.all([admin.disconnect(), nodes.close()])
  }
}

const isMissing = (answer: object | undefined): boolean => answer === undefined || 'missing' in answer

async function create(admin: Admin, specs: readonly TopicSpec[]): Promise<void> {
  try {
    await admin.createTopics({
      waitForLeaders: true,
      timeout: creationTimeoutMs,
      topics: specs.map(({ topic, partitions, replicationFactor, settings }) => ({
        topic,
        numPartitions: partitions,
        replicationFactor,
        configEntries: Object.entries(settings).map(([name, value]) => ({ name, value })),
      })),
    })
  } catch (error) {
    // Another process creates the same topics at the same time: the comparison that follows decides.
    if (!isNamed(error, 'KafkaJSAggregateError') && protocolType(error) !== 'TOPIC_ALREADY_EXISTS') throw error
    const errors = (error as { errors?: readonly unknown[] }).errors ?? []
    const other = errors.find(entry => protocolType(entry) !== 'TOPIC_ALREADY_EXISTS')
    if (other) throw brokerError(`create topic ${String((other as { topic?: unknown }).topic)}`, other)
  }
}

async function factsOfAll(directory: TopicDirectory, topics: readonly string[]): Promise<Map<string, TopicFacts>> {
  const ask = async () => {
    const found = new Map<string, TopicFacts>()
    for (const [topic, answer] of await directory.facts(topics)) {
      if ('missing' in answer) throw new WeirError('topic_missing', `topic ${topic} is not there after it was created`)
      found.set(topic, answer)
    }
    return found
  }
  return retrying(seenRetry, ask, error => error instanceof WeirError && error.code === 'topic_missing')
}

interface Fault {
  readonly topic: string
  readonly setting: string
  readonly value: string
  readonly wanted: string
}

function compare(spec: TopicSpec, facts: TopicFacts | undefined, settings: Map<string, string> | undefined): Fault[] {
  const { topic } = spec
  const faults: Fault[] = []
  const partitions = facts?.partitions ?? 0
  if (partitions !== spec.partitions) {
    faults.push({ topic, setting: 'partitions', value: String(partitions), wanted: String(spec.partitions) })
  }
  const replicas = facts?.replicas ?? 0
  if (replicas < spec.replicationFactor) {
    faults.push({
      topic,
      setting: 'replication.factor',
      value: String(replicas),
      wanted: String(spec.replicationFactor),
    })
  }
  for (const [setting, wanted] of Object.entries(spec.settings)) {
    const value = settings?.get(setting) ?? 'not readable'
    if (normal(value) !== normal(wanted)) faults.push({ topic, setting, value, wanted })
  }
  return faults
}

/** Lists may come in any order. */
const normal = (value: string): string => value.split(',').toSorted().join(',')

function mismatch(faults: readonly Fault[]): WeirError {
  const lines = faults.map(({ topic, setting, value, wanted }) => `${topic}: ${setting} is ${value}, wanted ${wanted}`)
  return new WeirError('topic_mismatch', `topics differ from what Weir needs: ${lines.join('; ')}`, {
    context: { faults },
  })
}
