// What the adapter must know of a topic before it sends to it: that it is there, how many partitions it has, how large a batch
// it takes, and whether we may write. kafkajs finds none of these out before it sends, and does not say afterwards which topic
// was at fault.
import { WeirError } from '@weir/core'
import type { Admin } from 'kafkajs'
import type { TopicMetadata } from './metadata-request.ts'
import { brokerError, textOf } from './kafkajs-errors.ts'
import { isPassing, type NodePool } from './node-pool.ts'
import { retrying } from './retrying.ts'

export interface TopicFacts {
  readonly topic: string
  readonly logId: string
  readonly partitions: number
  readonly replicas: number
  /** Largest record batch, bytes. */
  readonly maxBatchBytes: number
}

/** A fact or why there is none. */
export type TopicAnswer = TopicFacts | { readonly topic: string; readonly missing: 'topic_missing' | 'topic_denied' }

const unknownTopic = 3
const topicDenied = 29
const topicResource = 2
/** Kafka's default, taken when we may not read the topic's settings. */
const defaultMaxBatchBytes = 1_048_588
const factsAgeMs = 60_000
const retryPolicy = { withinMs: 5_000, firstDelayMs: 20, maxDelayMs: 500 }

export class TopicDirectory {
  readonly #nodes: NodePool
  readonly #admin: () => Promise<Admin>
  readonly #known = new Map<string, { readonly answer: TopicFacts; readonly atMs: number }>()
  readonly #asking = new Map<string, Promise<TopicAnswer | undefined>>()

  constructor(nodes: NodePool, admin: () => Promise<Admin>) {
    this.#nodes = nodes
    this.#admin = admin
  }

  /** Facts for each topic, at most a minute old; what is missing is asked for again each time. */
  async facts(topics: Iterable<string>): Promise<Map<string, TopicAnswer>> {
    const oldestMs = performance.now() - factsAgeMs
    const wanted = [...new Set(topics)]
    const isAtHand = (topic: string) =>
      (this.#known.get(topic)?.atMs ?? -Infinity) >= oldestMs || this.#asking.has(topic)
    this.#ask(wanted.filter(topic => !isAtHand(topic)))
    const answers = wanted.map(async topic => (await this.#asking.get(topic)) ?? this.#known.get(topic)?.answer)
    const found = new Map<string, TopicAnswer>()
    for (const answer of await Promise.all(answers)) if (answer) found.set(answer.topic, answer)
    return found
  }

  /** Facts already at hand for all of these topics, so that the quick path needs no promise. */
  cached(topics: Iterable<string>): Map<string, TopicFacts> | null {
    const oldestMs = performance.now() - factsAgeMs
    const answers = new Map<string, TopicFacts>()
    for (const topic of topics) {
      const known = this.#known.get(topic)
      if (!known || known.atMs < oldestMs) return null
      answers.set(topic, known.answer)
    }
    return answers
  }

  /** After a failed send: nothing of what was known is certain. */
  forget(topics: Iterable<string>): void {
    for (const topic of topics) this.#known.delete(topic)
  }

  async describe(topics: readonly string[]): Promise<TopicMetadata[]> {
    const found = await this.#metadata(topics)
    return topics.map(topic => {
      const metadata = found.find(entry => entry.topic === topic)
      if (metadata?.errorCode === 0) return metadata
      throw new WeirError(
        'topic_missing',
        `topic ${topic} is not on the broker (protocol code ${metadata?.errorCode})`,
        {
          context: { topic, protocolCode: metadata?.errorCode },
        },
      )
    })
  }

  /** One question for all who want to know. */
  #ask(topics: readonly string[]): void {
    if (topics.length === 0) return
    const answers = this.#answers(topics)
    for (const topic of topics) {
      const asking = answers.then(found => found.get(topic))
      this.#asking.set(topic, asking)
      const done = () => this.#asking.delete(topic)
      asking.then(
        // Later than those who wait: they must not be overtaken by someone who finds the answer at hand.
        answer =>
          setImmediate(() => {
            if (answer && !('missing' in answer)) this.#known.set(topic, { answer, atMs: performance.now() })
            done()
          }),
        done,
      )
    }
  }

  async #answers(topics: readonly string[]): Promise<Map<string, TopicAnswer>> {
    const found = (await this.#metadata(topics)).filter(({ errorCode }) => errorCode === 0)
    const limits = await this.#limits(found.map(({ topic }) => topic))
    return new Map(topics.map(topic => [topic, answerOf(topic, found, limits)]))
  }

  async #metadata(topics: readonly string[]): Promise<readonly TopicMetadata[]> {
    const ask = async () => {
      const { topics: found } = await this.#nodes.metadata(topics)
      const odd = found.find(({ errorCode }) => ![0, unknownTopic, topicDenied].includes(errorCode))
      if (odd) throw new Error(`metadata of ${odd.topic} has protocol code ${odd.errorCode}`)
      return found
    }
    try {
      return await retrying(retryPolicy, ask, error => isPassing(error))
    } catch (error) {
      throw brokerError('answer a metadata request', error, { topics })
    }
  }

  async #limits(topics: readonly string[]): Promise<Map<string, number>> {
    if (topics.length === 0) return new Map()
    const settings = await this.settings(topics)
    const limits = new Map<string, number>()
    for (const [topic, values] of settings) {
      const limit = Number(values.get('max.message.bytes'))
      if (limit > 0) limits.set(topic, limit)
    }
    return limits
  }

  /** Effective settings of topics; a topic whose settings may not be read is absent. */
  async settings(topics: readonly string[]): Promise<Map<string, Map<string, string>>> {
    const admin = await this.#admin()
    try {
      const { resources } = await admin.describeConfigs({
        includeSynonyms: false,
        resources: topics.map(topic => ({ type: topicResource, name: topic })),
      })
      return new Map(
        resources.map(({ resourceName, configEntries }) => [
          resourceName,
          new Map(configEntries.map(({ configName, configValue }) => [configName, configValue])),
        ]),
      )
    } catch (error) {
      if (/AUTHORIZATION/.test(String((error as { type?: unknown }).type))) return new Map()
      throw brokerError(`tell the settings of ${topics.join(', ')} (${textOf(error)})`, error, { topics })
    }
  }
}

function answerOf(topic: string, found: readonly TopicMetadata[], limits: ReadonlyMap<string, number>): TopicAnswer {
  const metadata = found.find(entry => entry.topic === topic)
  if (!metadata) return { topic, missing: 'topic_missing' }
  if (metadata.mayWrite === false) return { topic, missing: 'topic_denied' }
  return {
    topic,
    logId: metadata.logId,
    partitions: metadata.partitions.length,
    replicas: metadata.partitions[0]?.replicas ?? 0,
    maxBatchBytes: limits.get(topic) ?? defaultMaxBatchBytes,
  }
}
