import { WeirError, type Ack, type OutRecord, type Publisher, type PublisherOptions } from '@weir/core'
import type { WriterContext } from './partition-writer.ts'
import { PublishLane, refusalError } from './publish-lane.ts'
import type { Entry } from './publish-queue.ts'
import { answersFor, findRefusal } from './record-check.ts'
import { recordBytes } from './record-size.ts'
import type { TopicAnswer } from './topic-directory.ts'

const defaults = { lingerMs: 3, maxQueuedRecords: 20_000, maxQueuedBytes: 64 * 1_048_576 }
/** How long a record is tried; longer than one request and its kafkajs retries. */
const defaultDeliveryTimeoutMs = 30_000
/** Each lane has one request on its way; partitions are spread over them, so order per partition is kept. */
const laneCount = 2

export class KafkajsPublisher implements Publisher {
  readonly #context: WriterContext
  readonly #limits: { readonly maxQueuedRecords: number; readonly maxQueuedBytes: number }
  readonly #deliveryTimeoutMs: number
  readonly #lanes: readonly PublishLane[]
  #queuedRecords = 0
  #queuedBytes = 0
  #closed = false

  constructor(context: WriterContext, options: PublisherOptions & { readonly deliveryTimeoutMs?: number } = {}) {
    this.#context = context
    this.#limits = {
      maxQueuedRecords: options.maxQueuedRecords ?? defaults.maxQueuedRecords,
      maxQueuedBytes: options.maxQueuedBytes ?? defaults.maxQueuedBytes,
    }
    this.#deliveryTimeoutMs = options.deliveryTimeoutMs ?? defaultDeliveryTimeoutMs
    const lingerMs = options.lingerMs ?? defaults.lingerMs
    this.#lanes = Array.from({ length: laneCount }, () => new PublishLane(context, lingerMs))
  }

  async publish(records: readonly OutRecord[]): Promise<readonly Ack[]> {
    if (records.length === 0) return []
    let bytes = 0
    for (const record of records) bytes += recordBytes(record)
    this.#reserve(records.length, bytes)
    try {
      const answers = answersFor(this.#context.directory, records)
      return await this.#enqueue(records, answers instanceof Promise ? await answers : answers)
    } finally {
      this.#queuedRecords -= records.length
      this.#queuedBytes -= bytes
    }
  }

  /** Sends what waits, then closes. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.all(this.#lanes.map(lane => lane.drain()))
    for (const lane of this.#lanes) lane.close()
  }

  #reserve(records: number, bytes: number): void {
    if (this.#closed) throw new WeirError('broker_unavailable', 'the publisher is closed')
    const { maxQueuedRecords, maxQueuedBytes } = this.#limits
    const queuedRecords = this.#queuedRecords + records
    const queuedBytes = this.#queuedBytes + bytes
    if (queuedRecords > maxQueuedRecords || queuedBytes > maxQueuedBytes) {
      throw new WeirError(
        'publisher_full',
        `${queuedRecords} records and ${queuedBytes} bytes would wait for Kafka; the limits are ${maxQueuedRecords} and ${maxQueuedBytes}`,
        { context: { queuedRecords, queuedBytes, maxQueuedRecords, maxQueuedBytes } },
      )
    }
    this.#queuedRecords = queuedRecords
    this.#queuedBytes = queuedBytes
  }

  #enqueue(records: readonly OutRecord[], answers: ReadonlyMap<string, TopicAnswer>): Promise<readonly Ack[]> {
    const refusal = findRefusal(records, answers)
    if (refusal) return Promise.reject(refusalError(refusal.code, refusal.detail, refusal.topic))
    return new Promise((resolve, reject) => {
      const acks: Ack[] = []
      let open = records.length
      let failure: Error | null = null
      const settled = () => {
        if (--open > 0) return
        if (failure) reject(failure)
        else resolve(acks)
      }
      const deadlineMs = performance.now() + this.#deliveryTimeoutMs
      const entriesOfLane = this.#lanes.map((): Entry[] => [])
      records.forEach((record, i) => {
        const { topic, partition } = record
        const answer = answers.get(topic)
        entriesOfLane[partition % laneCount]?.push({
          record,
          bytes: recordBytes(record),
          maxBatchBytes: answer && 'maxBatchBytes' in answer ? answer.maxBatchBytes : 0,
          deadlineMs,
          acked: offset => {
            acks[i] = { topic, partition, offset }
            settled()
          },
          failed: error => {
            failure ??= error
            settled()
          },
        })
      })
      entriesOfLane.forEach((entries, lane) => {
        if (entries.length > 0) this.#lanes[lane]?.add(entries)
      })
    })
  }
}
