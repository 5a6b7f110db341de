// The transactional writer as a client of the simulated cluster: partitions, batches with sequences, offsets, commit, each a request.
import type { OutRecord, PartitionWriter, Position, TransactionResult, WriterOptions } from '@weir/core'
import { isLost, type RequestKind, type Wire } from './wire.ts'
import type { ProducedBatch, ProducerEpoch, SimulatedCluster } from './simulated-cluster.ts'

interface TransactionBatch {
  readonly records: readonly OutRecord[]
  readonly positions: readonly Position[]
}

/** As often as this a batch without an answer is sent again, with the same sequences. */
const maxResends = 1

export class SimulatedWriter implements PartitionWriter {
  readonly #cluster: SimulatedCluster
  readonly #wire: Wire
  readonly #options: WriterOptions
  readonly #owner: ProducerEpoch
  readonly #nextSequence = new Map<string, number>()
  #isDead = false

  constructor(cluster: SimulatedCluster, wire: Wire, options: WriterOptions, owner: ProducerEpoch) {
    this.#cluster = cluster
    this.#wire = wire
    this.#options = options
    this.#owner = owner
  }

  async run(batch: TransactionBatch): Promise<TransactionResult> {
    if (this.#isDead) throw new Error(`the writer of ${this.#owner.transactionalId} is dead: open a new one`)
    const result = await this.#transact(batch)
    if (result.kind !== 'committed') this.#isDead = true
    return result
  }

  close(): Promise<void> {
    this.#isDead = true
    return Promise.resolve()
  }

  async #transact({ records, positions }: TransactionBatch): Promise<TransactionResult> {
    for (const record of records) {
      const refusal = this.#cluster.refusalOf(record)
      if (refusal) {
        const { topic, code, detail } = refusal
        return { kind: 'refused', topic, code, cause: new Error(detail) }
      }
    }
    try {
      return await this.#steps(records, positions)
    } catch (error) {
      if (isLost(error)) return { kind: 'unknown', cause: error }
      throw error
    }
  }

  async #steps(records: readonly OutRecord[], positions: readonly Position[]): Promise<TransactionResult> {
    const cluster = this.#cluster
    const owner = this.#owner
    const batches = this.#batchesOf(records)
    if (batches.length > 0) {
      const added = () => cluster.addPartitions(owner, batches)
      if (!(await this.#call('partitions', `name ${batches.length} partitions`, added))) return { kind: 'fenced' }
    }
    const acks = await this.#produce(batches, records.length)
    if (acks === 'fenced') return { kind: 'fenced' }
    const isWhole = batches.every(({ topic, partition }) =>
      acks.some(ack => ack.topic === topic && ack.partition === partition),
    )
    // R3: an answer that does not cover what was sent is no answer.
    if (!isWhole) return { kind: 'unknown', cause: new Error('the answer does not cover what was sent') }
    const place = positions.map(p => `${p.topic}-${p.partition} up to ${p.nextOffset}`).join(', ')
    const offsets = () => cluster.addPositions(owner, this.#options.group, positions)
    if (!(await this.#call('offsets', `put offsets ${place}`, offsets))) return { kind: 'fenced' }
    if (this.#isDead) return { kind: 'unknown', cause: new Error('the writer was closed before it committed') }
    this.#options.beforeCommit?.()
    if (!(await this.#call('commit', `commit ${place}`, () => cluster.commit(owner)))) return { kind: 'fenced' }
    return { kind: 'committed' }
  }

  async #produce(batches: readonly ProducedBatch[], records: number) {
    const text = `append ${records} records (${batches.map(b => `${b.topic}-${b.partition}`).join(', ')})`
    for (let resends = 0; ; resends++) {
      try {
        const answer = await this.#call('append', text, () => this.#cluster.produce(this.#owner, batches))
        return answer.kind === 'acked' ? answer.acks : 'fenced'
      } catch (error) {
        if (!isLost(error) || resends === maxResends) throw error
      }
    }
  }

  #call<T>(kind: RequestKind, text: string, perform: () => T): Promise<T> {
    return this.#wire.call({ kind, who: this.#owner.transactionalId, text }, perform)
  }

  #batchesOf(records: readonly OutRecord[]): ProducedBatch[] {
    const batches = new Map<string, { topic: string; partition: number; records: OutRecord[] }>()
    for (const record of records) {
      const { topic, partition } = record
      const key = `${topic}\n${partition}`
      const batch = batches.get(key) ?? { topic, partition, records: [] }
      batch.records.push(record)
      batches.set(key, batch)
    }
    return [...batches.entries()].map(([key, batch]) => {
      const baseSequence = this.#nextSequence.get(key) ?? 0
      this.#nextSequence.set(key, baseSequence + batch.records.length)
      return { ...batch, baseSequence }
    })
  }
}
