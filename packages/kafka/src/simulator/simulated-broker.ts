// The broker port in memory, for tests of what stands on it: same results, same errors, no waiting but the scheduler's.
import {
  WeirError,
  type Ack,
  type Broker,
  type BrokerAdmin,
  type Fetched,
  type FetchRequest,
  type OutRecord,
  type PartitionWriter,
  type Position,
  type Publisher,
  type PublisherOptions,
  type TransactionResult,
} from '@weir/core'
import { recordBytes } from '../adapter/record-size.ts'
import { refusalError } from '../adapter/publish-lane.ts'
import { SimulatedCluster, type ProducerEpoch } from './simulated-cluster.ts'
import type { SimulatedGroup } from './simulated-group.ts'

export interface SimulatedBroker extends Broker {
  /** Shared by all brokers made for it. */
  readonly cluster: SimulatedCluster
  /** Freezes this process: its calls stand still and its sessions run out. The returned function lets it run again. */
  freeze(): () => void
}

const defaultMaxBytes = 1_048_576
const defaultMaxWaitMs = 100
const publisherDefaults = { maxQueuedRecords: 20_000, maxQueuedBytes: 64 * 1_048_576 }

/** One process' view of a cluster. Give the first one's `cluster` to the next to have two processes. */
export function createSimulatedBroker(options: { readonly cluster?: SimulatedCluster } = {}): SimulatedBroker {
  const cluster = options.cluster ?? new SimulatedCluster()
  const process = new SimulatedProcess(cluster)
  return {
    cluster,
    freeze: () => process.freeze(),
    admin: simulateAdmin(cluster, process),
    openReader: () =>
      Promise.resolve({
        fetch: request => simulateFetch(cluster, process, request),
        close: () => Promise.resolve(),
      }),
    openPublisher: publisherOptions => Promise.resolve(new SimulatedPublisher(cluster, process, publisherOptions)),
    openWriter: async ({ transactionalId, group }) => {
      await process.ready()
      return new SimulatedWriter(cluster, process, group, cluster.openEpoch(transactionalId))
    },
    join: async request => {
      await process.ready()
      const group = cluster.group(request.group)
      process.groups.add(group)
      return group.join(request, process)
    },
    close: () => Promise.resolve(),
  }
}

class SimulatedProcess {
  readonly groups = new Set<SimulatedGroup>()
  readonly #cluster: SimulatedCluster
  #frozen: PromiseWithResolvers<void> | null = null

  constructor(cluster: SimulatedCluster) {
    this.#cluster = cluster
  }

  get isFrozen(): boolean {
    return this.#frozen !== null
  }

  thawed(): Promise<void> {
    return this.#frozen?.promise ?? Promise.resolve()
  }

  freeze(): () => void {
    const frozen = Promise.withResolvers<void>()
    this.#frozen = frozen
    for (const group of this.groups) group.froze(this)
    return () => {
      if (this.#frozen !== frozen) return
      this.#frozen = null
      for (const group of this.groups) group.thawed(this)
      frozen.resolve()
    }
  }

  /** Waits while frozen. Throws `broker_unavailable` while the cluster is down. */
  async ready(): Promise<void> {
    while (this.#frozen) await this.#frozen.promise
    if (this.#cluster.faults.isDown) throw new WeirError('broker_unavailable', 'the simulated cluster is down')
  }
}

function simulateAdmin(cluster: SimulatedCluster, process: SimulatedProcess): BrokerAdmin {
  return {
    describe: async topics => {
      await process.ready()
      return topics.map(topic => {
        const found = cluster.topic(topic)
        if (!found) throw new WeirError('topic_missing', `topic ${topic} is not on the broker`, { context: { topic } })
        return { topic, logId: found.logId, partitions: found.partitions.length }
      })
    },
    bounds: async tp => {
      await process.ready()
      const { startOffset, endOffset } = cluster.log(tp)
      return { startOffset, endOffset }
    },
    offsetAt: async (tp, timestampMs) => {
      await process.ready()
      return cluster.log(tp).offsetAt(timestampMs)
    },
    committed: async (group, tps) => {
      await process.ready()
      return tps.flatMap(({ topic, partition }) => {
        const nextOffset = cluster.committedOffset(group, { topic, partition })
        return nextOffset === null ? [] : [{ topic, partition, nextOffset }]
      })
    },
  }
}

async function simulateFetch(
  cluster: SimulatedCluster,
  process: SimulatedProcess,
  request: FetchRequest,
): Promise<Fetched> {
  await process.ready()
  const { topic, partition, fromOffset, maxBytes = defaultMaxBytes, maxWaitMs = defaultMaxWaitMs } = request
  const log = cluster.log(request)
  if (log.isReadable(fromOffset) && log.lastStableOffset <= fromOffset && maxWaitMs > 0) {
    await new Promise<void>(resolve => {
      const forget = log.onChange(() => {
        stopTimer()
        resolve()
      })
      const stopTimer = cluster.scheduler.after(maxWaitMs, () => {
        forget()
        resolve()
      })
    })
    await process.ready()
  }
  // The topic may have been made again while this waited.
  const now = cluster.log(request)
  if (now.isReadable(fromOffset)) return now.read(fromOffset, maxBytes)
  throw new WeirError('log_out_of_range', `offset ${fromOffset} is outside the log ${topic}-${partition}`, {
    context: { topic, partition, fromOffset },
  })
}

class SimulatedPublisher implements Publisher {
  readonly #cluster: SimulatedCluster
  readonly #process: SimulatedProcess
  readonly #limits: { readonly maxQueuedRecords: number; readonly maxQueuedBytes: number }
  #queuedRecords = 0
  #queuedBytes = 0
  #isClosed = false

  constructor(cluster: SimulatedCluster, process: SimulatedProcess, options: PublisherOptions = {}) {
    this.#cluster = cluster
    this.#process = process
    this.#limits = { ...publisherDefaults, ...options }
  }

  async publish(records: readonly OutRecord[]): Promise<readonly Ack[]> {
    if (this.#isClosed) throw new WeirError('broker_unavailable', 'the publisher is closed')
    const bytes = records.reduce((sum, record) => sum + recordBytes(record), 0)
    const { maxQueuedRecords, maxQueuedBytes } = this.#limits
    if (this.#queuedRecords + records.length > maxQueuedRecords || this.#queuedBytes + bytes > maxQueuedBytes) {
      throw new WeirError(
        'publisher_full',
        `more than ${maxQueuedRecords} records or ${maxQueuedBytes} bytes would wait`,
      )
    }
    this.#queuedRecords += records.length
    this.#queuedBytes += bytes
    try {
      await this.#process.ready()
      return await this.#append(records)
    } finally {
      this.#queuedRecords -= records.length
      this.#queuedBytes -= bytes
    }
  }

  close(): Promise<void> {
    this.#isClosed = true
    return Promise.resolve()
  }

  async #append(records: readonly OutRecord[]): Promise<readonly Ack[]> {
    for (const record of records) {
      const refusal = this.#cluster.refusalOf(record)
      if (refusal) throw refusalError(refusal.code, refusal.detail, refusal.topic)
    }
    // At least once: without an answer the same records are sent again.
    for (;;) {
      const strike = await this.#cluster.faults.pass('publish', '')
      if (this.#cluster.faults.isDown) throw new WeirError('broker_unavailable', 'the simulated cluster is down')
      if (strike === 'lost-request') continue
      const acks = records.map(record => {
        const { topic, partition } = record
        return { topic, partition, offset: this.#cluster.appendPlain(record) }
      })
      if (strike === null) return acks
    }
  }
}

class SimulatedWriter implements PartitionWriter {
  readonly #cluster: SimulatedCluster
  readonly #process: SimulatedProcess
  readonly #group: string
  readonly #owner: ProducerEpoch
  #isDead = false

  constructor(cluster: SimulatedCluster, process: SimulatedProcess, group: string, owner: ProducerEpoch) {
    this.#cluster = cluster
    this.#process = process
    this.#group = group
    this.#owner = owner
  }

  async run(batch: {
    readonly records: readonly OutRecord[]
    readonly positions: readonly Position[]
  }): Promise<TransactionResult> {
    if (this.#isDead) throw new Error(`the writer of ${this.#owner.transactionalId} is dead: open a new one`)
    const result = await this.#transact(batch)
    if (result.kind !== 'committed') this.#isDead = true
    return result
  }

  close(): Promise<void> {
    this.#isDead = true
    return Promise.resolve()
  }

  async #transact(batch: {
    readonly records: readonly OutRecord[]
    readonly positions: readonly Position[]
  }): Promise<TransactionResult> {
    const { records, positions } = batch
    for (const record of records) {
      const refusal = this.#cluster.refusalOf(record)
      if (refusal) {
        const { topic, code, detail } = refusal
        return { kind: 'refused', topic, code, cause: new Error(detail) }
      }
    }
    const steps = [
      ['append', () => records.every(record => this.#cluster.appendInTransaction(this.#owner, record))],
      ['offsets', () => this.#cluster.addPositions(this.#owner, this.#group, positions)],
      ['commit', () => this.#cluster.commit(this.#owner)],
    ] as const
    for (const [at, step] of steps) {
      const strike = await this.#cluster.faults.pass(at, this.#owner.transactionalId)
      if (this.#process.isFrozen) await this.#process.thawed()
      if (strike !== 'lost-request' && !step()) return { kind: 'fenced' }
      if (strike !== null) return { kind: 'unknown', cause: new Error(`the answer to ${at} was lost`) }
    }
    return { kind: 'committed' }
  }
}
