// The broker port in memory, for tests of what stands on it: same results, same errors, no waiting but the scheduler's.
import {
  WeirError,
  type Ack,
  type Broker,
  type BrokerAdmin,
  type Fetched,
  type FetchRequest,
  type OutRecord,
  type Publisher,
  type PublisherOptions,
} from '@weir/core'
import { recordBytes } from '../adapter/record-size.ts'
import { refusalError } from '../adapter/publish-lane.ts'
import { SimulatedCluster } from './simulated-cluster.ts'
import type { ProcessState, SimulatedGroup } from './simulated-group.ts'
import { SimulatedWriter } from './simulated-writer.ts'
import { DirectWire, isLost, type Wire } from './wire.ts'

export interface SimulatedBroker extends Broker {
  /** Shared by all brokers made for it. */
  readonly cluster: SimulatedCluster
  /** Freezes this process: its calls stand still and its sessions run out. The returned function lets it run again. */
  freeze(): () => void
}

const defaultMaxBytes = 1_048_576
const defaultMaxWaitMs = 100
const publisherDefaults = { maxQueuedRecords: 20_000, maxQueuedBytes: 64 * 1_048_576 }

interface SimulatedBrokerOptions {
  readonly cluster?: SimulatedCluster
  /** How requests travel. Default: at once, but for the faults of the cluster. */
  readonly wire?: Wire
}

/** One process' view of a cluster. Give the first one's `cluster` to the next to have two processes. */
export function createSimulatedBroker(options: SimulatedBrokerOptions = {}): SimulatedBroker {
  const cluster = options.cluster ?? new SimulatedCluster()
  const process = new SimulatedProcess()
  const wire = options.wire ?? new DirectWire(cluster.faults, process)
  return {
    cluster,
    freeze: () => process.freeze(),
    admin: simulateAdmin(cluster, wire),
    openReader: () =>
      Promise.resolve({
        fetch: request => simulateFetch(cluster, wire, request),
        close: () => Promise.resolve(),
      }),
    openPublisher: publisherOptions => Promise.resolve(new SimulatedPublisher(cluster, wire, publisherOptions)),
    openWriter: async writerOptions => {
      const { transactionalId } = writerOptions
      const request = { kind: 'open', who: transactionalId, text: `open ${transactionalId}` } as const
      const owner = await wire.call(request, () => cluster.openEpoch(transactionalId))
      return new SimulatedWriter(cluster, wire, writerOptions, owner)
    },
    join: request =>
      wire.call({ kind: 'join', who: '', text: `join ${request.group}` }, () => {
        const group = cluster.group(request.group)
        process.groups.add(group)
        const membership = group.join(request, process)
        // The request of a process that froze meanwhile: its session runs from here.
        if (process.isFrozen) group.froze(process)
        return membership
      }),
    close: () => Promise.resolve(),
  }
}

class SimulatedProcess implements ProcessState {
  readonly groups = new Set<SimulatedGroup>()
  #frozen: PromiseWithResolvers<void> | null = null

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
}

function simulateAdmin(cluster: SimulatedCluster, wire: Wire): BrokerAdmin {
  const ask = <T>(text: string, perform: () => T): Promise<T> => wire.call({ kind: 'admin', who: '', text }, perform)
  return {
    describe: topics =>
      ask(`describe ${topics.join(', ')}`, () =>
        topics.map(topic => {
          const found = cluster.topic(topic)
          if (!found)
            throw new WeirError('topic_missing', `topic ${topic} is not on the broker`, { context: { topic } })
          return { topic, logId: found.logId, partitions: found.partitions.length }
        }),
      ),
    bounds: tp =>
      ask(`bounds of ${tp.topic}-${tp.partition}`, () => {
        const { startOffset, endOffset } = cluster.log(tp)
        return { startOffset, endOffset }
      }),
    offsetAt: (tp, timestampMs) =>
      ask(`offset of ${tp.topic}-${tp.partition} at a time`, () => cluster.log(tp).offsetAt(timestampMs)),
    committed: (group, tps) =>
      ask(`committed offsets of ${group}`, () =>
        tps.flatMap(({ topic, partition }) => {
          const nextOffset = cluster.committedOffset(group, { topic, partition })
          return nextOffset === null ? [] : [{ topic, partition, nextOffset }]
        }),
      ),
  }
}

function simulateFetch(cluster: SimulatedCluster, wire: Wire, request: FetchRequest): Promise<Fetched> {
  const { topic, partition, fromOffset, maxBytes = defaultMaxBytes, maxWaitMs = defaultMaxWaitMs } = request
  const read = (): Fetched => {
    // The topic may have been made again while this waited.
    const now = cluster.log(request)
    if (now.isReadable(fromOffset)) return now.read(fromOffset, maxBytes)
    throw new WeirError('log_out_of_range', `offset ${fromOffset} is outside the log ${topic}-${partition}`, {
      context: { topic, partition, fromOffset },
    })
  }
  return wire.call({ kind: 'fetch', who: '', text: `fetch ${topic}-${partition} from ${fromOffset}` }, () => {
    const log = cluster.log(request)
    if (!log.isReadable(fromOffset) || log.lastStableOffset > fromOffset || maxWaitMs <= 0) return read()
    return new Promise<void>(resolve => {
      const forget = log.onChange(() => {
        stopTimer()
        resolve()
      })
      const stopTimer = cluster.scheduler.after(maxWaitMs, () => {
        forget()
        resolve()
      })
    }).then(read)
  })
}

class SimulatedPublisher implements Publisher {
  readonly #cluster: SimulatedCluster
  readonly #wire: Wire
  readonly #limits: { readonly maxQueuedRecords: number; readonly maxQueuedBytes: number }
  #queuedRecords = 0
  #queuedBytes = 0
  #isClosed = false

  constructor(cluster: SimulatedCluster, wire: Wire, options: PublisherOptions = {}) {
    this.#cluster = cluster
    this.#wire = wire
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
    const request = { kind: 'publish', who: '', text: `publish ${records.map(nameOf).join(', ')}` } as const
    // At least once: without an answer the same records are sent again.
    for (;;) {
      try {
        return await this.#wire.call(request, () =>
          records.map(record => {
            const { topic, partition } = record
            return { topic, partition, offset: this.#cluster.appendPlain(record) }
          }),
        )
      } catch (error) {
        if (!isLost(error)) throw error
      }
    }
  }
}

function nameOf({ topic, partition }: OutRecord): string {
  return `${topic}-${partition}`
}
