// The state of a simulated cluster: topics, transactions, group offsets. Brokers made for it share it, as processes share a real
// one. Nothing here waits, except through the scheduler.
import { uuidV5, WeirError, type OutRecord, type Position, type TopicPartition } from '@weir/core'
import { batchOverheadBytes, recordBytes } from '../adapter/record-size.ts'
import type { Refusal } from '../adapter/record-check.ts'
import { Faults } from './faults.ts'
import { PartitionLog } from './partition-log.ts'
import { realScheduler, type Scheduler } from './scheduler.ts'
import { SimulatedGroup } from './simulated-group.ts'

interface Topic {
  readonly logId: string
  readonly partitions: readonly PartitionLog[]
  readonly maxMessageBytes: number
}

interface TransactionalId {
  readonly producerId: number
  epoch: number
  /** The transaction in progress, if any. */
  open: OpenTransaction | null
}

interface OpenTransaction {
  readonly key: string
  /** Partitions named for it; what is appended elsewhere is refused. */
  readonly named: Set<string>
  readonly logs: Set<PartitionLog>
  readonly positions: { readonly group: string; readonly position: Position }[]
  readonly stopTimer: () => void
}

/** Right to write under a transactional id; out of date once the id was opened again. */
export interface ProducerEpoch {
  readonly transactionalId: string
  readonly producerId: number
  readonly epoch: number
}

/** Records for one partition, with the sequence of the first. */
export interface ProducedBatch extends TopicPartition {
  readonly baseSequence: number
  readonly records: readonly OutRecord[]
}

export type ProduceAnswer =
  | { readonly kind: 'acked'; readonly acks: readonly (TopicPartition & { readonly baseOffset: number })[] }
  /** An old epoch, a partition that was not named, or sequences that do not follow: nothing of that batch was appended. */
  | { readonly kind: 'refused' }

export interface SimulatedTopic {
  readonly topic: string
  readonly partitions: number
  /** Default 1 MiB and 12 bytes, as Kafka has it. */
  readonly maxMessageBytes?: number
}

const defaultTransactionTimeoutMs = 15_000
const defaultMaxMessageBytes = 1_048_588

export class SimulatedCluster {
  readonly scheduler: Scheduler
  /** What goes wrong next. */
  readonly faults = new Faults()
  readonly #topics = new Map<string, Topic>()
  readonly #transactionalIds = new Map<string, TransactionalId>()
  readonly #offsets = new Map<string, number>()
  readonly #groups = new Map<string, SimulatedGroup>()
  readonly #transactionTimeoutMs: number
  #topicCount = 0
  #transactionCount = 0
  #producerCount = 0

  /** `transactionTimeoutMs`: after this an open transaction is aborted and its owner fenced. Default 15,000. */
  constructor(scheduler: Scheduler = realScheduler, options: { readonly transactionTimeoutMs?: number } = {}) {
    this.scheduler = scheduler
    this.#transactionTimeoutMs = options.transactionTimeoutMs ?? defaultTransactionTimeoutMs
  }

  createTopic(topic: SimulatedTopic): void {
    if (this.#topics.has(topic.topic)) throw new Error(`topic ${topic.topic} is there already`)
    this.#topics.set(topic.topic, {
      logId: uuidV5(['simulated topic', topic.topic, String(this.#topicCount++)]),
      partitions: Array.from({ length: topic.partitions }, (_, partition) => new PartitionLog(topic.topic, partition)),
      maxMessageBytes: topic.maxMessageBytes ?? defaultMaxMessageBytes,
    })
  }

  deleteTopic(topic: string): void {
    this.#topics.delete(topic)
    for (const key of this.#offsets.keys()) if (key.split('\n')[1] === topic) this.#offsets.delete(key)
  }

  /** Same name, new log: offsets from 0, another id. */
  recreateTopic(topic: SimulatedTopic): void {
    this.deleteTopic(topic.topic)
    this.createTopic(topic)
  }

  topic(topic: string): Topic | null {
    return this.#topics.get(topic) ?? null
  }

  /** Throws `topic_missing`. */
  log(tp: TopicPartition): PartitionLog {
    const log = this.#topics.get(tp.topic)?.partitions[tp.partition]
    if (log) return log
    throw new WeirError('topic_missing', `partition ${tp.topic}-${tp.partition} is not on the broker`, {
      context: { ...tp },
    })
  }

  group(group: string): SimulatedGroup {
    const known = this.#groups.get(group)
    if (known) return known
    const made = new SimulatedGroup(group, this.scheduler, topic => this.#topics.get(topic)?.partitions.length ?? 0)
    this.#groups.set(group, made)
    return made
  }

  /** Why a record would be refused for good, or null. */
  refusalOf(record: OutRecord): Refusal | null {
    const { topic, partition } = record
    const refused = this.faults.refusalOf(topic)
    if (refused) return { topic, code: refused, detail: `topic ${topic} refuses records` }
    const found = this.#topics.get(topic)
    if (!found?.partitions[partition]) {
      return { topic, code: 'topic_missing', detail: `partition ${topic}-${partition} is not on the broker` }
    }
    const bytes = recordBytes(record) + batchOverheadBytes
    if (bytes <= found.maxMessageBytes) return null
    const detail = `a record of ${bytes} bytes is larger than max.message.bytes of ${topic}, ${found.maxMessageBytes}`
    return { topic, code: 'record_too_large', detail }
  }

  appendPlain(record: OutRecord): number {
    return this.log(record).append(record, this.scheduler.nowMs(), null)
  }

  /** InitProducerId: the last owner's transaction is aborted, and its epoch is out of date. */
  openEpoch(transactionalId: string): ProducerEpoch {
    const known = this.#transactionalIds.get(transactionalId)
    const state = known ?? { producerId: this.#producerCount++, epoch: -1, open: null }
    this.#transactionalIds.set(transactionalId, state)
    this.#end(state, 'abort')
    state.epoch++
    return { transactionalId, producerId: state.producerId, epoch: state.epoch }
  }

  isCurrent({ transactionalId, epoch }: ProducerEpoch): boolean {
    return this.#transactionalIds.get(transactionalId)?.epoch === epoch
  }

  /** AddPartitionsToTxn. Returns false when the epoch is out of date. */
  addPartitions(owner: ProducerEpoch, partitions: readonly TopicPartition[]): boolean {
    const transaction = this.#transaction(owner)
    if (!transaction) return false
    for (const { topic, partition } of partitions) transaction.named.add(`${topic}\n${partition}`)
    return true
  }

  /** Produce: batch by batch; one of an old epoch, of a partition that was not named, or out of sequence, refuses the rest. */
  produce(owner: ProducerEpoch, batches: readonly ProducedBatch[]): ProduceAnswer {
    const acks: (TopicPartition & { baseOffset: number })[] = []
    const { producerId, epoch } = owner
    for (const { topic, partition, baseSequence, records } of batches.slice(0, this.faults.cut(batches.length))) {
      const log = this.log({ topic, partition })
      const sequence = { producerId, epoch, baseSequence, count: records.length }
      const verdict = this.isCurrent(owner) ? log.sequences.check(sequence) : ({ kind: 'refused' } as const)
      if (verdict.kind === 'refused') return { kind: 'refused' }
      if (verdict.kind === 'known') {
        acks.push({ topic, partition, baseOffset: verdict.baseOffset })
        continue
      }
      const transaction = this.#transactionalIds.get(owner.transactionalId)?.open ?? null
      if (transaction === null || !transaction.named.has(`${topic}\n${partition}`)) return { kind: 'refused' }
      transaction.logs.add(log)
      const offsets = records.map(record => log.append(record, this.scheduler.nowMs(), transaction.key))
      const baseOffset = offsets[0] ?? log.endOffset
      log.sequences.remember(sequence, baseOffset)
      acks.push({ topic, partition, baseOffset })
    }
    return { kind: 'acked', acks }
  }

  addPositions(owner: ProducerEpoch, group: string, positions: readonly Position[]): boolean {
    const transaction = this.#transaction(owner)
    if (!transaction) return false
    for (const position of positions) transaction.positions.push({ group, position })
    return true
  }

  commit(owner: ProducerEpoch): boolean {
    if (!this.isCurrent(owner)) return false
    const state = this.#transactionalIds.get(owner.transactionalId)
    if (state) this.#end(state, 'commit')
    return true
  }

  /** Aborts the transaction in progress. Returns false when the epoch is out of date. */
  abort(owner: ProducerEpoch): boolean {
    if (!this.isCurrent(owner)) return false
    const state = this.#transactionalIds.get(owner.transactionalId)
    if (state) this.#end(state, 'abort')
    return true
  }

  committedOffset(group: string, tp: TopicPartition): number | null {
    return this.#offsets.get(offsetKey(group, tp)) ?? null
  }

  /** Sets a group's offset back or forward, or forgets it: what an operator or an expired offset does. */
  setCommittedOffset(group: string, tp: TopicPartition, offset: number | null): void {
    if (offset === null) this.#offsets.delete(offsetKey(group, tp))
    else this.#offsets.set(offsetKey(group, tp), offset)
  }

  #transaction(owner: ProducerEpoch): OpenTransaction | null {
    if (!this.isCurrent(owner)) return null
    const state = this.#transactionalIds.get(owner.transactionalId)
    if (!state) return null
    if (!state.open) {
      const stopTimer = this.scheduler.after(this.#transactionTimeoutMs, () => {
        // The coordinator aborts it and fences whoever began it.
        this.#end(state, 'abort')
        state.epoch++
      })
      const key = `${owner.transactionalId}/${this.#transactionCount++}`
      state.open = { key, named: new Set(), logs: new Set(), positions: [], stopTimer }
    }
    return state.open
  }

  #end(state: TransactionalId, outcome: 'commit' | 'abort'): void {
    const transaction = state.open
    if (!transaction) return
    state.open = null
    transaction.stopTimer()
    if (outcome === 'commit') {
      for (const { group, position } of transaction.positions)
        this.setCommittedOffset(group, position, position.nextOffset)
    }
    for (const log of transaction.logs) log.end(transaction.key, outcome)
  }
}

function offsetKey(group: string, { topic, partition }: TopicPartition): string {
  return `${group}\n${topic}\n${partition}`
}
