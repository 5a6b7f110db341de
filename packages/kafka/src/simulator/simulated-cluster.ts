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
  epoch: number
  /** The transaction in progress, if any. */
  open: OpenTransaction | null
}

interface OpenTransaction {
  readonly key: string
  readonly logs: Set<PartitionLog>
  readonly positions: { readonly group: string; readonly position: Position }[]
  readonly stopTimer: () => void
}

/** Right to write under a transactional id; out of date once the id was opened again. */
export interface ProducerEpoch {
  readonly transactionalId: string
  readonly epoch: number
}

export interface SimulatedTopic {
  readonly topic: string
  readonly partitions: number
  /** Default 1 MiB and 12 bytes, as Kafka has it. */
  readonly maxMessageBytes?: number
}

const transactionTimeoutMs = 15_000
const defaultMaxMessageBytes = 1_048_588

export class SimulatedCluster {
  readonly scheduler: Scheduler
  /** What goes wrong next. */
  readonly faults = new Faults()
  readonly #topics = new Map<string, Topic>()
  readonly #transactionalIds = new Map<string, TransactionalId>()
  readonly #offsets = new Map<string, number>()
  readonly #groups = new Map<string, SimulatedGroup>()
  #topicCount = 0
  #transactionCount = 0

  constructor(scheduler: Scheduler = realScheduler) {
    this.scheduler = scheduler
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
    const state = this.#transactionalIds.get(transactionalId) ?? { epoch: -1, open: null }
    this.#transactionalIds.set(transactionalId, state)
    this.#end(state, 'abort')
    state.epoch++
    return { transactionalId, epoch: state.epoch }
  }

  isCurrent({ transactionalId, epoch }: ProducerEpoch): boolean {
    return this.#transactionalIds.get(transactionalId)?.epoch === epoch
  }

  /** Returns false when the epoch is out of date. */
  appendInTransaction(owner: ProducerEpoch, record: OutRecord): boolean {
    const transaction = this.#transaction(owner)
    if (!transaction) return false
    const log = this.log(record)
    transaction.logs.add(log)
    log.append(record, this.scheduler.nowMs(), transaction.key)
    return true
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
      const stopTimer = this.scheduler.after(transactionTimeoutMs, () => {
        // The coordinator aborts it and fences whoever began it.
        this.#end(state, 'abort')
        state.epoch++
      })
      const key = `${owner.transactionalId}/${this.#transactionCount++}`
      state.open = { key, logs: new Set(), positions: [], stopTimer }
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
