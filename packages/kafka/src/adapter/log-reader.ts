// Direct fetches of single partitions, without a group. Each fetch that is under way has a connection of its own, because a node
// answers one request per connection at a time and a fetch waits for data.
import { WeirError, type FetchRequest, type Fetched, type LogReader, type LogRecord } from '@weir/core'
import type { Broker, FetchedMessage, FetchedPartition, KafkajsClient } from '../patches/kafkajs-client.ts'
import { leaderIdOf } from './broker-admin.ts'
import { brokerError, isNamed, protocolType } from './kafkajs-errors.ts'
import { isPassing, type NodePool } from './node-pool.ts'
import { retrying } from './retrying.ts'

const retryPolicy = { withinMs: 5_000, firstDelayMs: 20, maxDelayMs: 500 }
const defaultMaxBytes = 1_048_576
const defaultMaxWaitMs = 100
const readCommitted = 1

export class KafkajsLogReader implements LogReader {
  readonly #nodes: NodePool
  readonly #client: KafkajsClient
  readonly #leaders = new Map<string, number>()
  readonly #idle = new Map<number, Broker[]>()
  #closed = false

  constructor(nodes: NodePool, client: KafkajsClient) {
    this.#nodes = nodes
    this.#client = client
  }

  async fetch(request: FetchRequest): Promise<Fetched> {
    const { topic, partition, fromOffset } = request
    try {
      return await retrying(retryPolicy, () => this.#fetchOnce(request), isPassing)
    } catch (error) {
      if (protocolType(error) === 'OFFSET_OUT_OF_RANGE') throw outOfRange(request, error)
      if (isNamed(error, 'KafkaJSNotImplemented')) throw unreadable(request, error)
      throw brokerError(`give records of ${topic}-${partition} from offset ${fromOffset}`, error, { ...request })
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    for (const brokers of this.#idle.values()) for (const broker of brokers) this.#nodes.drop(broker)
    this.#idle.clear()
    await this.#nodes.close()
  }

  async #fetchOnce(request: FetchRequest): Promise<Fetched> {
    const { topic, partition } = request
    if (this.#closed) throw new WeirError('broker_unavailable', `the reader of ${topic}-${partition} is closed`)
    const key = `${topic}/${partition}`
    const leader = this.#leaders.get(key) ?? (await leaderIdOf(this.#nodes, request))
    this.#leaders.set(key, leader)
    const broker = this.#idle.get(leader)?.pop() ?? (await this.#connect(leader, key))
    try {
      const fetched = await this.#send(broker, request)
      this.#release(broker)
      return fetched
    } catch (error) {
      this.#leaders.delete(key)
      if (protocolType(error) === null) this.#nodes.drop(broker)
      else this.#release(broker)
      throw error
    }
  }

  async #connect(leader: number, key: string): Promise<Broker> {
    try {
      return await this.#nodes.dedicated(leader)
    } catch (error) {
      this.#leaders.delete(key)
      throw error
    }
  }

  #release(broker: Broker): void {
    if (this.#closed) return this.#nodes.drop(broker)
    const idle = this.#idle.get(broker.nodeId)
    if (idle) idle.push(broker)
    else this.#idle.set(broker.nodeId, [broker])
  }

  async #send(broker: Broker, request: FetchRequest): Promise<Fetched> {
    const { topic, partition, fromOffset, maxBytes = defaultMaxBytes, maxWaitMs = defaultMaxWaitMs } = request
    const { responses } = await broker.fetch({
      isolationLevel: readCommitted,
      maxWaitTime: maxWaitMs,
      minBytes: 1,
      maxBytes,
      topics: [{ topic, partitions: [{ partition, fetchOffset: String(fromOffset), maxBytes }] }],
    })
    const answer = responses[0]?.partitions[0]
    if (!answer) throw new Error(`the answer does not hold ${topic}-${partition}`)
    return this.#fetched(request, answer)
  }

  #fetched(request: FetchRequest, answer: FetchedPartition): Fetched {
    const { topic, partition, fromOffset } = request
    const batch = new this.#client.Batch(topic, String(fromOffset), answer)
    return {
      records: batch.messages.map(message => toLogRecord(topic, partition, message)),
      startOffset: fromOffset,
      // Never beyond what was read: an empty answer can also mean that an open transaction holds the rest back.
      nextOffset: batch.isEmptyIncludingFiltered() ? fromOffset : Number(batch.lastOffset()) + 1,
      logStartOffset: Number(answer.lastStartOffset),
      lastStableOffset: Number(answer.lastStableOffset),
      highWatermark: Number(answer.highWatermark),
    }
  }
}

function toLogRecord(topic: string, partition: number, message: FetchedMessage): LogRecord {
  return {
    topic,
    partition,
    offset: Number(message.offset),
    timestampMs: Number(message.timestamp),
    key: message.key,
    value: message.value,
    headers: message.headers,
  }
}

function outOfRange(request: FetchRequest, cause: unknown): WeirError {
  const { topic, partition, fromOffset } = request
  return new WeirError('log_out_of_range', `offset ${fromOffset} is outside the log ${topic}-${partition}`, {
    cause,
    context: { topic, partition, fromOffset },
  })
}

function unreadable(request: FetchRequest, cause: unknown): WeirError {
  const { topic, partition, fromOffset } = request
  return new WeirError(
    'topic_mismatch',
    `${topic}-${partition} holds records at ${fromOffset} in a compression that is not supported: set compression.type of the topic to uncompressed or gzip`,
    { cause, context: { topic, partition, fromOffset, setting: 'compression.type' } },
  )
}
