// The sink's loop: reads every partition of every audited topic from its own positions and lands what it finds.
import {
  hasCode,
  WeirError,
  type Broker,
  type Clock,
  type Fetched,
  type Log,
  type LogReader,
  type Ownership,
  type TopicNames,
} from '@weir/core'
import { describeRecord } from './domain/describe-record.ts'
import type { SinkMetrics } from './metrics.ts'
import type { AuditStore, Decoder, LandingPart, LogProgress } from './ports.ts'

export interface SinkOptions {
  readonly topics: TopicNames
  /** Topics to audit, in the order of the flow; those that do not exist yet are looked for again. */
  readonly audited: readonly string[]
  readonly broker: Broker
  readonly store: AuditStore
  readonly decoder: Decoder
  readonly clock: Clock
  readonly log: Log
  readonly metrics: SinkMetrics
  readonly faultPoint: (name: string) => void
  /** Resolves after `ms` or when the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>
}

const lanes = 4
const maxFetchBytes = 512 * 1024
const maxLandingRecords = 2_000
/** After a small landing records gather for this long: a transaction costs the same for one message as for many. */
const gatherMs = 100
const gatherBelowRecords = 500
/** An idle partition is asked again after this time, doubling up to the second. */
const firstIdleMs = 20
const maxIdleMs = 600
const discoverEveryMs = 15_000
const partitionsEveryMs = 3_600_000
const daysAhead = 7
const maxBackoffMs = 5_000

interface Tracked extends LogProgress {
  readonly reader: LogReader
  nextOffset: number
  dueMs: number
  idleMs: number
  /** Why this partition has stopped; a person must look. */
  stopped: string | null
}

/** One turn as the store's writer; ends when the signal aborts or another writer took over. */
export class AuditSink {
  readonly #options: SinkOptions
  #tracked: Tracked[] = []
  #state: 'waiting' | 'landing' = 'waiting'
  #failure: string | null = null
  #partitionsAhead = 0
  /** A log was found to be another one: look for logs again before the next landing. */
  #isStale = false

  constructor(options: SinkOptions) {
    this.#options = options
  }

  ready(): string | null {
    if (this.#failure !== null) return this.#failure
    if (this.#state === 'landing' && this.#partitionsAhead < 1) return 'no partition for today'
    return this.#tracked.find(log => log.stopped !== null)?.stopped ?? null
  }

  /** Lands until the signal aborts; takes over again after each failure. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { log, sleep } = this.#options
    let backoffMs = 100
    while (!signal.aborted) {
      try {
        await this.#turn(signal)
        backoffMs = 100
      } catch (error) {
        this.#failure = error instanceof Error ? error.message : String(error)
        const level = error instanceof WeirError && error.retriable ? 'warn' : 'error'
        log[level]({ err: error }, 'landing failed; taking over again')
        await sleep(backoffMs, signal)
        backoffMs = Math.min(backoffMs * 2, maxBackoffMs)
      }
    }
    this.#state = 'waiting'
  }

  async #turn(signal: AbortSignal): Promise<void> {
    const { store, broker } = this.#options
    const ownership = await store.takeOver()
    await this.#makePartitions()
    const readers = await Promise.all(Array.from({ length: lanes }, () => broker.openReader()))
    try {
      this.#tracked = []
      await this.#discover(readers)
      this.#state = 'landing'
      this.#failure = null
      await this.#land(ownership, readers, signal)
    } finally {
      await Promise.all(readers.map(reader => reader.close()))
    }
  }

  async #land(ownership: Ownership, readers: readonly LogReader[], signal: AbortSignal): Promise<void> {
    const { clock, sleep } = this.#options
    let discoveredMs = clock.nowMs()
    let partitionsMs = discoveredMs
    while (!signal.aborted) {
      const nowMs = clock.nowMs()
      if (this.#isStale || nowMs - discoveredMs > discoverEveryMs) {
        this.#isStale = false
        await this.#discover(readers)
        discoveredMs = nowMs
      }
      if (nowMs - partitionsMs > partitionsEveryMs) {
        await this.#makePartitions()
        partitionsMs = nowMs
      }
      const parts = await this.#ofTheSameLog(await this.#collect(readers))
      if (parts.length === 0) {
        await sleep(this.#untilDue(), signal)
        continue
      }
      await this.#store(ownership, parts)
      if (parts.reduce((sum, part) => sum + part.rows.length, 0) < gatherBelowRecords) await sleep(gatherMs, signal)
    }
  }

  #untilDue(): number {
    const due = Math.min(...this.#tracked.filter(log => log.stopped === null).map(log => log.dueMs))
    return Math.min(maxIdleMs, Math.max(5, due - this.#options.clock.nowMs()))
  }

  /** Fetches from what is due until there is enough for one landing. Each reader fetches its own partitions, one at a time. */
  async #collect(readers: readonly LogReader[]): Promise<LandingPart[]> {
    const nowMs = this.#options.clock.nowMs()
    // Who has waited longest first: a busy partition must not keep the others from landing before retention takes them.
    const due = this.#tracked
      .filter(log => log.stopped === null && log.dueMs <= nowMs)
      .sort((a, b) => a.dueMs - b.dueMs)
    const parts: LandingPart[] = []
    let records = 0
    await Promise.all(
      readers.map(async reader => {
        for (const log of due) {
          if (log.reader !== reader || records >= maxLandingRecords) continue
          const part = await this.#fetch(log)
          if (part === null) continue
          records += part.rows.length
          parts.push(part)
        }
      }),
    )
    // In the order of the flow, so that within a landing a cause comes before what it led to.
    const { audited } = this.#options
    const rank = ({ log: { topic } }: LandingPart): number =>
      audited.includes(topic) ? audited.indexOf(topic) : audited.length
    return parts.sort((a, b) => rank(a) - rank(b))
  }

  async #fetch(log: Tracked): Promise<LandingPart | null> {
    const { topic, partition, nextOffset: fromOffset } = log
    let fetched: Fetched
    try {
      fetched = await log.reader.fetch({ topic, partition, fromOffset, maxBytes: maxFetchBytes, maxWaitMs: 1 })
    } catch (error) {
      if (!hasCode(error, 'log_out_of_range')) throw error
      await this.#outOfRange(log)
      return null
    }
    this.#options.metrics.lag(topic, partition, fetched.highWatermark - fetched.nextOffset)
    this.#options.metrics.lagSeconds(topic, partition, this.#ageSeconds(fetched))
    if (fetched.nextOffset <= fromOffset) {
      log.idleMs = Math.min(log.idleMs * 2, maxIdleMs)
      log.dueMs = this.#options.clock.nowMs() + log.idleMs
      return null
    }
    log.idleMs = firstIdleMs
    log.dueMs = this.#options.clock.nowMs()
    const { decoder, topics } = this.#options
    const rows = []
    for (const record of fetched.records) rows.push({ record, columns: await describeRecord(topics, decoder, record) })
    return { log: { topic, logId: log.logId, partition, nextOffset: fromOffset }, nextOffset: fetched.nextOffset, rows }
  }

  /** Age of the newest message fetched while more wait behind it; 0 at the end of the log. */
  #ageSeconds({ records, nextOffset, lastStableOffset }: Fetched): number {
    const newest = records.at(-1)
    if (newest === undefined || nextOffset >= lastStableOffset) return 0
    return Math.max(0, this.#options.clock.nowMs() - newest.timestampMs) / 1_000
  }

  /**
   * Drops what was fetched from a topic that was created again: records are fetched by the topic's name, so they may be of either
   * log. Asked after the fetch: a topic that still has its log now had it then.
   */
  async #ofTheSameLog(parts: LandingPart[]): Promise<LandingPart[]> {
    if (parts.length === 0) return parts
    const topics = [...new Set(parts.map(part => part.log.topic))]
    const logIds = new Map((await this.#options.broker.admin.describe(topics)).map(d => [d.topic, d.logId]))
    const same = parts.filter(part => logIds.get(part.log.topic) === part.log.logId)
    if (same.length < parts.length) this.#isStale = true
    return same
  }

  /** The next offset is not in the log: it is another log, or it ends too early, or retention was quicker than the sink. */
  async #outOfRange(log: Tracked): Promise<void> {
    const { admin } = this.#options.broker
    const { topic, partition, nextOffset } = log
    const { startOffset, endOffset } = await admin.bounds({ topic, partition })
    const [now] = await admin.describe([topic])
    if (now?.logId !== log.logId) {
      this.#isStale = true
      return
    }
    if (nextOffset > endOffset) this.#stopTruncated(log, endOffset)
    else if (nextOffset < startOffset) {
      const missing = `offset ${nextOffset} is next, but the log begins at offset ${startOffset}`
      this.#stop(log, 'coverage_gap', `${topic} ${partition}: ${missing}`)
    }
  }

  async #store(ownership: Ownership, parts: readonly LandingPart[]): Promise<void> {
    const { store, metrics, clock, faultPoint } = this.#options
    const startedMs = clock.nowMs()
    if (!(await store.land(ownership, parts)))
      throw new WeirError('fenced', 'another instance writes the audit store now')
    faultPoint('audit.after-commit')
    for (const part of parts) {
      const log = this.#tracked.find(t => t.logId === part.log.logId && t.partition === part.log.partition)
      if (log !== undefined) log.nextOffset = part.nextOffset
      metrics.landed(part.log.topic, part.rows.length, part.rows.filter(row => row.columns.opaque !== null).length)
    }
    metrics.landing((clock.nowMs() - startedMs) / 1_000)
  }

  /** Finds logs that are not read yet: new topics, topics created again, partitions added. */
  async #discover(readers: readonly LogReader[]): Promise<void> {
    const { store, broker, log, clock } = this.#options
    const stored = await store.positions()
    const found = (await Promise.all(this.#wanted(stored).map(async topic => await this.#describe(topic)))).flat()
    this.#tracked = this.#tracked.filter(t => !found.some(d => d.topic === t.topic && d.logId !== t.logId))
    for (const description of found) {
      const { topic, logId, partitions } = description
      const old = stored.find(position => position.topic === topic && position.logId !== logId)
      const isNew = !stored.some(position => position.logId === logId)
      if (old !== undefined && isNew) {
        log.error(
          { topic, logId, before: old.logId, alarm: 'log_changed' },
          'a topic was created again; its new log is audited from its first offset',
        )
      }
      for (let partition = 0; partition < partitions; partition++) {
        if (this.#tracked.some(t => t.logId === logId && t.partition === partition)) continue
        const { startOffset, endOffset } = await broker.admin.bounds({ topic, partition })
        const position = stored.find(p => p.logId === logId && p.partition === partition)
        const nextOffset = position?.nextOffset ?? startOffset
        if (position === undefined) await store.begin({ topic, logId, partition, nextOffset })
        const reader = readers[this.#tracked.length % readers.length]
        if (reader === undefined) throw new WeirError('internal', 'the sink has no reader')
        const tracked: Tracked = {
          topic,
          logId,
          partition,
          nextOffset,
          reader,
          dueMs: clock.nowMs(),
          idleMs: firstIdleMs,
          stopped: null,
        }
        this.#tracked.push(tracked)
        if (nextOffset > endOffset) this.#stopTruncated(tracked, endOffset)
      }
    }
  }

  /** The topics of the configuration, and those of agents that were in it before: what is left in them lands too. */
  #wanted(stored: readonly LogProgress[]): readonly string[] {
    const { audited, topics } = this.#options
    const former = stored.map(position => position.topic).filter(topic => topic.startsWith(topics.agentPrefix))
    return [...new Set([...audited, ...former])]
  }

  async #describe(topic: string) {
    try {
      return await this.#options.broker.admin.describe([topic])
    } catch (error) {
      if (!hasCode(error, 'topic_missing')) throw error
      if (this.#options.audited.includes(topic))
        this.#options.log.warn({ topic }, 'a topic to be audited does not exist yet')
      return []
    }
  }

  #stopTruncated(log: Tracked, endOffset: number): void {
    const { topic, partition, nextOffset } = log
    const reason = `${topic} ${partition}: the log ends at offset ${endOffset}, but ${nextOffset} was reached before`
    this.#stop(log, 'log_truncated', reason)
  }

  #stop(log: Tracked, alarm: 'coverage_gap' | 'log_truncated', reason: string): void {
    log.stopped = reason
    this.#options.metrics.gap(log.topic)
    this.#options.log.error(
      { topic: log.topic, partition: log.partition, alarm, reason },
      'a partition is no longer audited',
    )
  }

  async #makePartitions(): Promise<void> {
    this.#partitionsAhead = await this.#options.store.ensurePartitions(daysAhead)
    this.#options.metrics.partitionsAhead(this.#partitionsAhead)
    if (this.#partitionsAhead < 1) throw new WeirError('internal', 'the audit store has no partition for today')
  }
}
