// The transactional writer of one (stage, partition number): rules R1, R2, R3 and R5.
import type { OutRecord, PartitionWriter, Position, TransactionResult, WriterOptions } from '@weir/core'
import type { Producer, Transaction } from 'kafkajs'
import { AckCheck } from './ack-check.ts'
import { transactionTimeoutMs } from './broker-options.ts'
import { createKafka, produceRetry, type ClientContext } from './client-settings.ts'
import { brokerError, isFenced, protocolType, textOf } from './kafkajs-errors.ts'
import { isPassing } from './node-pool.ts'
import { answersFor, findRefusal, type Refusal } from './record-check.ts'
import { retrying } from './retrying.ts'
import { planSends, toTopicMessages, type Slice } from './send-plan.ts'
import type { AdapterRules } from './adapter-rules.ts'
import type { TopicDirectory } from './topic-directory.ts'

export interface WriterContext extends ClientContext {
  readonly directory: TopicDirectory
  readonly rules: AdapterRules
  /** What is open and must be closed with the broker. */
  readonly opened: Set<() => Promise<void>>
}

interface TransactionBatch {
  readonly records: readonly OutRecord[]
  readonly positions: readonly Position[]
}

/** The last owner's transaction is aborted at once, but its markers may be on their way. */
const openRetry = { withinMs: 30_000, firstDelayMs: 50, maxDelayMs: 1_000 }
/** AddOffsetsToTxn as a transaction's first request meets the markers of the one before. */
const offsetsRetry = { withinMs: 5_000, firstDelayMs: 5, maxDelayMs: 200 }
const notDoneTypes = new Set([
  'CONCURRENT_TRANSACTIONS',
  'NOT_COORDINATOR_FOR_GROUP',
  'GROUP_COORDINATOR_NOT_AVAILABLE',
  'GROUP_LOAD_IN_PROGRESS',
])
/** By then the coordinator has aborted the transaction itself. */
const runDeadlineMs = transactionTimeoutMs + 5_000
const allInSyncReplicas = -1
/** Answers that can mean a record is refused for good, without saying which. */
const refusalTypes = new Set([
  'MESSAGE_TOO_LARGE',
  'RECORD_LIST_TOO_LARGE',
  'UNKNOWN_TOPIC_OR_PARTITION',
  'INVALID_TOPIC_EXCEPTION',
  'TOPIC_AUTHORIZATION_FAILED',
  'OPERATION_NOT_ATTEMPTED',
])

export class KafkajsPartitionWriter implements PartitionWriter {
  readonly #context: WriterContext
  readonly #options: WriterOptions
  readonly #producer: Producer
  readonly #acks = new AckCheck()
  readonly #close = () => this.close()
  #transaction: Transaction | null
  #state: 'open' | 'running' | 'dead' = 'open'

  private constructor(context: WriterContext, options: WriterOptions, producer: Producer, transaction: Transaction) {
    this.#context = context
    this.#options = options
    this.#producer = producer
    this.#transaction = transaction
    context.opened.add(this.#close)
  }

  /** Fences the last owner: InitProducerId raises the epoch and is answered only when the old transaction has its outcome. */
  static async open(context: WriterContext, options: WriterOptions): Promise<KafkajsPartitionWriter> {
    const attempt = async () => {
      const producer = createProducer(context, options.transactionalId)
      try {
        await producer.connect()
        return new KafkajsPartitionWriter(context, options, producer, await producer.transaction())
      } catch (error) {
        disconnect(context, producer)
        throw error
      }
    }
    const mayRetry = (error: unknown) => isPassing(error) || protocolType(error) === 'CONCURRENT_TRANSACTIONS'
    try {
      return await retrying(openRetry, attempt, mayRetry)
    } catch (error) {
      const { transactionalId } = options
      throw brokerError(`open transactional id ${transactionalId}`, error, { transactionalId })
    }
  }

  async run(batch: TransactionBatch): Promise<TransactionResult> {
    if (this.#state !== 'open') {
      throw new Error(`the writer of ${this.#options.transactionalId} is ${this.#state}: open a new one`)
    }
    this.#state = 'running'
    const result = await this.#withinDeadline(this.#transact(batch))
    if (result.kind === 'committed' && this.#state === 'running') this.#state = 'open'
    else this.#die()
    return result
  }

  async close(): Promise<void> {
    this.#die()
    await Promise.resolve()
  }

  async #transact(batch: TransactionBatch): Promise<TransactionResult> {
    try {
      const answers = await answersFor(this.#context.directory, batch.records)
      const refusal = findRefusal(batch.records, answers)
      if (refusal) return refused(refusal, new Error(refusal.detail))
      const limitOf = (topic: string) => {
        const answer = answers.get(topic)
        return answer && 'maxBatchBytes' in answer ? answer.maxBatchBytes : 0
      }
      const transaction = this.#transaction ?? (await this.#producer.transaction())
      this.#transaction = null
      for (const request of planSends(batch.records, limitOf)) await this.#send(transaction, request)
      await this.#sendOffsets(transaction, batch.positions)
      if (this.#state !== 'running') throw new Error('the writer was closed before its transaction was committed')
      this.#options.beforeCommit?.()
      await transaction.commit()
      return { kind: 'committed' }
    } catch (error) {
      return this.#resultOf(error, batch)
    }
  }

  async #send(transaction: Transaction, request: readonly Slice[]): Promise<void> {
    const answer = await transaction.sendBatch({ acks: allInSyncReplicas, topicMessages: toTopicMessages(request) })
    if (!this.#context.rules.checkAcks) return
    const { faults } = this.#acks.check(request, answer)
    if (faults.length > 0) throw new Error(`the broker's answer does not cover what was sent: ${faults.join('; ')}`)
  }

  async #sendOffsets(transaction: Transaction, positions: readonly Position[]): Promise<void> {
    if (positions.length === 0) return
    const topics = [...new Set(positions.map(({ topic }) => topic))].map(topic => ({
      topic,
      partitions: positions
        .filter(position => position.topic === topic)
        .map(({ partition, nextOffset }) => ({ partition, offset: String(nextOffset) })),
    }))
    // Only these answers are retried: they say that nothing was done. Any other ends the producer.
    await retrying(
      offsetsRetry,
      () => transaction.sendOffsets({ consumerGroupId: this.#options.group, topics }),
      error => notDoneTypes.has(protocolType(error) ?? ''),
    )
  }

  async #resultOf(error: unknown, batch: TransactionBatch): Promise<TransactionResult> {
    if (isFenced(error)) return { kind: 'fenced' }
    const { directory } = this.#context
    directory.forget(new Set(batch.records.map(({ topic }) => topic)))
    if (!refusalTypes.has(protocolType(error) ?? '')) return { kind: 'unknown', cause: error }
    try {
      const refusal = findRefusal(batch.records, await answersFor(directory, batch.records))
      return refusal ? refused(refusal, error) : { kind: 'unknown', cause: error }
    } catch (lookupError) {
      return { kind: 'unknown', cause: new AggregateError([error, lookupError], textOf(error)) }
    }
  }

  #withinDeadline(work: Promise<TransactionResult>): Promise<TransactionResult> {
    return new Promise(resolve => {
      const timer = setTimeout(() => {
        const cause = new Error(`a transaction of ${this.#options.transactionalId} took more than ${runDeadlineMs} ms`)
        resolve({ kind: 'unknown', cause })
        // kafkajs goes on trying and opens new connections for it; they are closed when it gives up.
        void work.finally(() => disconnect(this.#context, this.#producer))
      }, runDeadlineMs)
      void work.then(result => {
        clearTimeout(timer)
        resolve(result)
      })
    })
  }

  #die(): void {
    if (this.#state === 'dead') return
    this.#state = 'dead'
    this.#context.opened.delete(this.#close)
    disconnect(this.#context, this.#producer)
  }
}

function refused(refusal: Refusal, cause: unknown): TransactionResult {
  return { kind: 'refused', topic: refusal.topic, code: refusal.code, cause }
}

function createProducer(context: WriterContext, transactionalId: string): Producer {
  return createKafka(context).producer({
    transactionalId,
    idempotent: true,
    maxInFlightRequests: 1,
    transactionTimeout: transactionTimeoutMs,
    retry: produceRetry,
    metadataMaxAge: 300_000,
    allowAutoTopicCreation: false,
    createPartitioner: explicitPartitioner,
  })
}

/** Every record names its partition. */
export const explicitPartitioner =
  () =>
  ({ message }: { readonly message: { readonly partition?: number } }): number => {
    if (message.partition === undefined) throw new TypeError('a record has no partition')
    return message.partition
  }

/** Closes in the background: it waits for answers that may never come. */
export function disconnect(context: ClientContext, producer: Producer): void {
  producer.disconnect().catch((error: unknown) => context.log.debug({ err: error }, 'closing a producer failed'))
}
