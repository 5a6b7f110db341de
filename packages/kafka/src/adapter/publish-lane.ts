// One idempotent producer with at most one request on its way: rules R1 and R3 for records that belong to no transaction.
import { setTimeout as sleep } from 'node:timers/promises'
import { WeirError } from '@weir/core'
import type { Producer, RecordMetadata } from 'kafkajs'
import { AckCheck } from './ack-check.ts'
import { createKafka, publishRetry } from './client-settings.ts'
import { brokerError, protocolType } from './kafkajs-errors.ts'
import { disconnect, explicitPartitioner, type WriterContext } from './partition-writer.ts'
import { PublishQueue, type Entry, type EntrySlice } from './publish-queue.ts'
import { findRefusal } from './record-check.ts'
import { sliceKey, toTopicMessages } from './send-plan.ts'

const allInSyncReplicas = -1
const firstDelayMs = 20
const maxDelayMs = 1_000
/** Answers that name no topic but mean one: the directory can tell which, or it was passing. */
const topicTypes = new Set(['UNKNOWN_TOPIC_OR_PARTITION', 'INVALID_TOPIC_EXCEPTION', 'TOPIC_AUTHORIZATION_FAILED'])
/** Answers after which the same bytes will be refused again: the record at fault must be found. */
const recordTypes = new Set([
  'MESSAGE_TOO_LARGE',
  'RECORD_LIST_TOO_LARGE',
  'INVALID_RECORD',
  'INVALID_TIMESTAMP',
  'POLICY_VIOLATION',
  'UNSUPPORTED_COMPRESSION_TYPE',
])

export class PublishLane {
  readonly #context: WriterContext
  readonly #lingerMs: number
  readonly #queue = new PublishQueue()
  #producer: { readonly producer: Producer; readonly acks: AckCheck } | null = null
  #pump: Promise<void> | null = null

  constructor(context: WriterContext, lingerMs: number) {
    this.#context = context
    this.#lingerMs = lingerMs
  }

  add(entries: readonly Entry[]): void {
    for (const entry of entries) this.#queue.add(entry)
    this.#pump ??= this.#run()
  }

  /** Resolves when nothing waits any more. */
  async drain(): Promise<void> {
    while (this.#pump) await this.#pump
  }

  close(): void {
    if (this.#producer) disconnect(this.#context, this.#producer.producer)
    this.#producer = null
  }

  async #run(): Promise<void> {
    if (this.#lingerMs > 0) await sleep(this.#lingerMs)
    let delayMs = firstDelayMs
    while (this.#queue.size > 0) {
      const request = this.#queue.take(this.#queue.isLimited())
      const sent = await this.#send(request)
      if (sent) {
        delayMs = firstDelayMs
        continue
      }
      await sleep(delayMs * (0.5 + Math.random() / 2))
      delayMs = Math.min(delayMs * 2, maxDelayMs)
    }
    this.#pump = null
  }

  /** Never throws: every entry is acknowledged, failed, or back in the queue. Returns false when a pause is due. */
  async #send(request: readonly EntrySlice[]): Promise<boolean> {
    try {
      const { producer, acks } = (this.#producer ??= await this.#open())
      const answer = await producer.sendBatch({ acks: allInSyncReplicas, topicMessages: toTopicMessages(request) })
      return this.#settle(request, answer, acks)
    } catch (error) {
      this.#discard()
      this.#context.log.debug({ err: error, slices: request.length }, 'publishing failed; a new producer is opened')
      const type = protocolType(error) ?? ''
      const isOneRecords = recordTypes.has(type)
      const kept = isOneRecords || topicTypes.has(type) ? await this.#failNamed(request, error) : request
      if (isOneRecords && kept === request) this.#narrow(request, error)
      else for (const slice of kept) this.#again(slice, error)
      return isOneRecords
    }
  }

  async #open(): Promise<{ readonly producer: Producer; readonly acks: AckCheck }> {
    const producer = createKafka(this.#context).producer({
      idempotent: true,
      maxInFlightRequests: 1,
      retry: publishRetry,
      metadataMaxAge: 300_000,
      allowAutoTopicCreation: false,
      createPartitioner: explicitPartitioner,
    })
    try {
      await producer.connect()
    } catch (error) {
      disconnect(this.#context, producer)
      throw error
    }
    return { producer, acks: new AckCheck() }
  }

  #discard(): void {
    if (!this.#producer || !this.#context.rules.discardProducer) return
    disconnect(this.#context, this.#producer.producer)
    this.#producer = null
  }

  #settle(request: readonly EntrySlice[], answer: readonly RecordMetadata[], acks: AckCheck): boolean {
    const { baseOffsets, faults } = acks.check(request, answer)
    for (const slice of request) {
      const base = baseOffsets.get(sliceKey(slice))
      if (base !== undefined) slice.entries.forEach(({ acked }, i) => acked(base + i))
      else if (this.#context.rules.checkAcks) this.#again(slice, new Error(faults.join('; ')))
      else slice.entries.forEach(({ acked }) => acked(-1))
      this.#queue.unlimit(slice)
    }
    if (faults.length === 0 || !this.#context.rules.checkAcks) return true
    this.#context.log.warn({ faults }, 'the broker acknowledged less than was sent; the rest is sent again')
    this.#discard()
    return false
  }

  /** At least once: sent again by a new producer, until its time is up. */
  #again(slice: EntrySlice, cause: unknown): void {
    const nowMs = performance.now()
    const late = slice.entries.filter(({ deadlineMs }) => deadlineMs <= nowMs)
    const { topic, partition } = slice
    for (const { failed } of late)
      failed(brokerError(`take records for ${topic}-${partition}`, cause, { topic, partition }))
    const rest = slice.entries.filter(({ deadlineMs }) => deadlineMs > nowMs)
    if (rest.length > 0) this.#queue.putBack({ ...slice, entries: rest })
  }

  /** Fails the entries whose topic or size is at fault; returns the slices of the others, or `request` when none is. */
  async #failNamed(request: readonly EntrySlice[], error: unknown): Promise<readonly EntrySlice[]> {
    const { directory, log } = this.#context
    const topics = new Set(request.map(({ topic }) => topic))
    directory.forget(topics)
    const answers = await directory.facts(topics).catch((lookupError: unknown) => {
      log.debug({ err: lookupError }, 'asking for the topics of a refused request failed')
      return null
    })
    let failed = 0
    const kept = request.map(slice => {
      const entries = slice.entries.filter(entry => {
        const refusal = answers && findRefusal([entry.record], answers)
        if (refusal) entry.failed(refusalError(refusal.code, refusal.detail, refusal.topic, error))
        return !refusal
      })
      failed += slice.entries.length - entries.length
      return { ...slice, entries }
    })
    return failed === 0 ? request : kept.filter(({ entries }) => entries.length > 0)
  }

  /** The broker refuses a record and does not say which: smaller requests, until it stands alone and fails alone. */
  #narrow(request: readonly EntrySlice[], error: unknown): void {
    const isAlone = request.length === 1
    for (const slice of request) {
      const [entry] = slice.entries
      if (isAlone && entry && slice.entries.length === 1) {
        this.#queue.unlimit(slice)
        entry.failed(recordRefused(slice, error))
        continue
      }
      this.#queue.limit(slice, isAlone ? Math.floor(slice.entries.length / 2) : slice.entries.length)
      this.#again(slice, error)
    }
  }
}

/** Not retriable: the same bytes would be refused again. */
function recordRefused({ topic, partition }: EntrySlice, cause: unknown): WeirError {
  const type = protocolType(cause)
  return new WeirError('topic_mismatch', `topic ${topic} refuses a record for partition ${partition}: ${type}`, {
    cause,
    context: { topic, partition, type },
  })
}

/** `topic_denied` is no error code of its own: the remedy is the topic's. */
export function refusalError(
  code: 'record_too_large' | 'topic_missing' | 'topic_denied',
  detail: string,
  topic: string,
  cause?: unknown,
): WeirError {
  return new WeirError(code === 'topic_denied' ? 'topic_missing' : code, detail, { cause, context: { topic, code } })
}
