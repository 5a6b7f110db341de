// What arrived: read from the topics, without a consumer group.
import { agentTopic, type Broker, type LogReader, type LogRecord, type TopicNames } from '@weir/core'
import { connectBroker, createCodec, type Codec } from '@weir/kafka'
import { createLog } from '@weir/runtime'
import type { Decision } from '@weir/schemas'
import type { Delivered } from './ledger.ts'

const agents = ['triage', 'billing', 'watch', 'ops'] as const

/** Follows topics from their first record on, remembering how far it has come. */
export class Observer {
  readonly topics: TopicNames
  readonly delivered: Delivered[] = []
  readonly decisions: Decision[] = []
  /** Records seen in every audited topic. */
  messages = 0
  parked = 0
  readonly #broker: Broker
  readonly #reader: LogReader
  readonly #codec: Codec
  readonly #next = new Map<string, number>()
  readonly #partitions: number

  private constructor(parts: {
    broker: Broker
    reader: LogReader
    codec: Codec
    topics: TopicNames
    partitions: number
  }) {
    this.#broker = parts.broker
    this.#reader = parts.reader
    this.#codec = parts.codec
    this.topics = parts.topics
    this.#partitions = parts.partitions
  }

  static async open(options: {
    readonly brokers: string
    readonly registryUrl: string
    readonly topics: TopicNames
    readonly partitions: number
  }): Promise<Observer> {
    const log = createLog({ service: 'demo', level: 'error' })
    const broker = connectBroker({ brokers: options.brokers.split(','), clientId: 'weir-demo', log })
    const codec = await createCodec({ registryUrl: options.registryUrl, log })
    const { topics, partitions } = options
    return new Observer({ broker, reader: await broker.openReader(), codec, topics, partitions })
  }

  async close(): Promise<void> {
    await this.#reader.close()
    await this.#broker.close()
  }

  /** Reads all topics to their ends as they are now; returns how many records were new. */
  async readOn(): Promise<number> {
    const { raw, receipts, events, decisions, released, outcomes, actions, parked, control } = this.topics
    const agentTopics = agents.map(agent => agentTopic(this.topics, agent))
    const flow = [raw, receipts, events, decisions, released, outcomes, actions, parked, ...agentTopics]
    let found = await this.#readPartition(control, 0)
    for (const topic of flow) {
      for (let partition = 0; partition < this.#partitions; partition++)
        found += await this.#readPartition(topic, partition)
    }
    this.messages += found
    return found
  }

  async #readPartition(topic: string, partition: number): Promise<number> {
    const place = `${topic} ${partition}`
    const { startOffset, endOffset } = await this.#broker.admin.bounds({ topic, partition })
    let found = 0
    for (let from = this.#next.get(place) ?? startOffset; from < endOffset;) {
      const fetched = await this.#reader.fetch({ topic, partition, fromOffset: from, maxWaitMs: 50 })
      // An open transaction ends what can be read for now.
      if (fetched.nextOffset === from) break
      for (const record of fetched.records) await this.#note(record)
      found += fetched.records.length
      from = fetched.nextOffset
      this.#next.set(place, from)
    }
    return found
  }

  async #note(record: LogRecord): Promise<void> {
    if (record.topic.startsWith(this.topics.agentPrefix)) {
      const header = (name: string): string => record.headers.find(([n]) => n === name)?.[1].toString('utf8') ?? ''
      const agent = record.topic.slice(this.topics.agentPrefix.length)
      this.delivered.push({ agent, key: header('ce_id'), orderingKey: header('ce_partitionkey') })
    } else if (record.topic === this.topics.parked) this.parked += 1
    else if (record.topic === this.topics.decisions) {
      const decoded = await this.#codec.decode('Decision', record.value)
      if (decoded.kind === 'ok') this.decisions.push(decoded.value)
    }
  }
}
