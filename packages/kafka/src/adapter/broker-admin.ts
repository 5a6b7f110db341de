import type { BrokerAdmin, Position, TopicDescription, TopicPartition } from '@weir/core'
import { WeirError } from '@weir/core'
import type { Broker, KafkajsClient } from '../patches/kafkajs-client.ts'
import { brokerError, protocolType } from './kafkajs-errors.ts'
import { isPassing, type NodePool } from './node-pool.ts'
import { offsetFetchRequest } from './offset-fetch-request.ts'
import { retrying } from './retrying.ts'
import type { TopicDirectory } from './topic-directory.ts'

const retryPolicy = { withinMs: 10_000, firstDelayMs: 20, maxDelayMs: 500 }
const earliest = -2
const latest = -1
/** High watermark, not the last stable offset. */
const readUncommitted = 0

export class KafkajsBrokerAdmin implements BrokerAdmin {
  readonly #nodes: NodePool
  readonly #directory: TopicDirectory
  readonly #client: KafkajsClient

  constructor(nodes: NodePool, directory: TopicDirectory, client: KafkajsClient) {
    this.#nodes = nodes
    this.#directory = directory
    this.#client = client
  }

  async describe(topics: readonly string[]): Promise<readonly TopicDescription[]> {
    const found = await this.#directory.describe(topics)
    return found.map(({ topic, logId, partitions }) => ({ topic, logId, partitions: partitions.length }))
  }

  async bounds(tp: TopicPartition): Promise<{ readonly startOffset: number; readonly endOffset: number }> {
    const [startOffset, endOffset] = await Promise.all([this.#offset(tp, earliest), this.#offset(tp, latest)])
    return { startOffset, endOffset }
  }

  async offsetAt(tp: TopicPartition, timestampMs: number): Promise<number> {
    const offset = await this.#offset(tp, timestampMs)
    return offset >= 0 ? offset : this.#offset(tp, latest)
  }

  async committed(group: string, tps: readonly TopicPartition[]): Promise<readonly Position[]> {
    if (tps.length === 0) return []
    const topics = [...new Set(tps.map(({ topic }) => topic))].map(topic => ({
      topic,
      partitions: tps.filter(tp => tp.topic === topic).map(({ partition }) => partition),
    }))
    const request = offsetFetchRequest(group, topics, code => this.#client.createErrorFromCode(code))
    const ask = async () => {
      const coordinator = await this.#nodes.node(await this.#nodes.coordinator(group))
      return this.#dropOnSilence(coordinator, () => coordinator.connectionPool.send(request))
    }
    try {
      const { offsets } = await retrying(retryPolicy, ask, isPassing)
      return offsets
        .filter(({ offset }) => offset >= 0)
        .map(({ topic, partition, offset }) => ({ topic, partition, nextOffset: offset }))
    } catch (error) {
      throw brokerError(`tell the offsets of group ${group}`, error, { group })
    }
  }

  async #offset(tp: TopicPartition, timestamp: number): Promise<number> {
    const { topic, partition } = tp
    const topics = [{ topic, partitions: [{ partition, timestamp }] }]
    const ask = async () => {
      const leader = await leaderOf(this.#nodes, tp)
      const answer = await this.#dropOnSilence(leader, () =>
        leader.listOffsets({ isolationLevel: readUncommitted, topics }),
      )
      return Number(answer.responses[0]?.partitions[0]?.offset)
    }
    try {
      return await retrying(retryPolicy, ask, isPassing)
    } catch (error) {
      throw brokerError(`tell the offsets of ${topic}-${partition}`, error, { topic, partition })
    }
  }

  /** A connection on which a request failed without an answer is not used again: it may be half open. */
  async #dropOnSilence<T>(broker: Broker, send: () => Promise<T>): Promise<T> {
    try {
      return await send()
    } catch (error) {
      if (protocolType(error) === null) this.#nodes.drop(broker)
      throw error
    }
  }
}

/** Leader of a partition, on the shared connection. Throws `topic_missing` when there is no such partition. */
async function leaderOf(nodes: NodePool, tp: TopicPartition): Promise<Broker> {
  return nodes.node(await leaderIdOf(nodes, tp))
}

export async function leaderIdOf(nodes: NodePool, tp: TopicPartition): Promise<number> {
  const { topic, partition } = tp
  const { topics } = await nodes.metadata([topic])
  const metadata = topics.find(entry => entry.topic === topic)
  const found = metadata?.partitions.find(entry => entry.partition === partition)
  if (found) return found.leader
  const there = metadata?.errorCode === 0 ? `it has ${metadata.partitions.length} partitions` : 'the topic is not there'
  throw new WeirError('topic_missing', `partition ${topic}-${partition} is not on the broker: ${there}`, {
    context: { topic, partition, protocolCode: metadata?.errorCode },
  })
}
