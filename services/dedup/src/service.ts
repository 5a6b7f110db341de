import {
  fenced,
  WeirError,
  partitionOf,
  type ClaimContext,
  type Clock,
  type Coordinate,
  type LogRecord,
  type OutRecord,
  type Ownership,
  type StageBatch,
  type StageHandler,
  type StageVerdict,
  type TopicNames,
} from '@weir/core'
import { businessClaimOf, settleRepeats, type Judged, type Repeats } from './domain/batch.ts'
import { duplicateOf, judge, type Finding, type ParkReason } from './domain/judge.ts'
import { KeyCache } from './domain/key-cache.ts'
import { forwardedRecord, outputsOf, unreadableOutputs, type OutputContext } from './domain/outputs.ts'
import { restoredClaims } from './domain/restore.ts'
import { eventFault } from './domain/validate.ts'
import { ageMs, isOutsideWindow } from './domain/window.ts'
import type { DedupMetrics } from './metrics.ts'
import type { ClaimAnswer, ClaimLedger, ClaimRequest, DedupCodec, Holder, SourceRules } from './ports.ts'

export interface DedupOptions {
  readonly topics: TopicNames
  readonly partitions: number
  readonly ledger: ClaimLedger
  readonly codec: DedupCodec
  readonly sources: SourceRules
  readonly clock: Clock
  readonly metrics: DedupMetrics
  /** Entries of the hot cache per partition; 0 switches it off. */
  readonly cacheEntries: number
  /** Largest record that is let through, bytes with key and headers; below what weir.raw and weir.events take. */
  readonly maxEventBytes: number
  readonly faultPoint: (name: string) => void
}

/** Outputs by the offset they answer: they are emitted in input order. */
type Answers = Map<number, OutRecord[]>

interface Sorted {
  readonly judged: readonly Judged[]
  readonly answers: Answers
}

/** Each event once: the stage handler of `weir.raw`. */
export class DedupService implements StageHandler {
  readonly #options: DedupOptions
  readonly #caches = new Map<number, { readonly logId: string; readonly keys: KeyCache }>()

  constructor(options: DedupOptions) {
    this.#options = options
  }

  begin(ownership: Ownership): Promise<void> {
    this.#caches.delete(ownership.partition)
    return Promise.resolve()
  }

  end(partition: number): void {
    this.#caches.delete(partition)
  }

  /** Empties the hot cache; outcomes do not depend on it. */
  forget(): void {
    this.#caches.clear()
  }

  claim(batch: StageBatch, context: ClaimContext): Promise<StageVerdict> {
    return this.#claim(batch, context)
  }

  reroute(batch: StageBatch, context: ClaimContext, topic: string, code: string): Promise<StageVerdict> {
    const { topics } = this.#options
    if (topic !== topics.events || code !== 'record_too_large') {
      throw new WeirError('topic_missing', `topic ${topic} does not take what dedup writes (${code})`, {
        context: { topic, code, partition: batch.partition },
      })
    }
    return this.#claim(batch, context)
  }

  async rebuild(outputs: readonly LogRecord[], ownership: Ownership): Promise<{ readonly restored: number }> {
    const { topics, codec, ledger } = this.#options
    const decided = outputs.filter(record => record.topic === topics.decisions)
    const decisions = await Promise.all(decided.map(async record => await codec.decodeDecision(record)))
    const claims = restoredClaims(decisions)
    let restored = 0
    for (let from = 0; from < claims.length; from += restoreChunk) {
      const missing = await ledger.restore(ownership, claims.slice(from, from + restoreChunk))
      if (missing === null) throw fenced(ownership)
      restored += missing
    }
    return { restored }
  }

  async #claim(batch: StageBatch, context: ClaimContext): Promise<StageVerdict> {
    const output = this.#outputContext(batch)
    const { judged, answers } = await this.#sort(batch, output)
    const { firsts, repeats } = settleRepeats(judged)
    const cache = this.#cacheOf(batch)
    const holders = new Map<string, Holder & { payloadDigest: Buffer }>()
    const asked = firsts.filter(first => !this.#answerFromCache(cache, first, output, answers, holders))
    this.#options.faultPoint('dedup.before-claim')
    const found = await this.#options.ledger.claim(batch, context, asked.map(requestOf))
    if (found === null) return { kind: 'fenced' }
    for (const [i, first] of asked.entries()) this.#answer(cache, first, found[i], output, answers, holders)
    for (const group of repeats) this.#answerRepeats(group, output, answers, holders)
    const offsets = [...answers.keys()].sort((a, b) => a - b)
    return { kind: 'emit', records: offsets.flatMap(offset => answers.get(offset) ?? []) }
  }

  /** Decodes and validates; what cannot be judged is parked or forwarded right here. */
  async #sort(batch: StageBatch, output: OutputContext): Promise<Sorted> {
    const { codec, partitions, metrics, maxEventBytes } = this.#options
    const answers: Answers = new Map()
    const judged: Judged[] = []
    const park = (record: LogRecord, reason: ParkReason, detail: string): void => {
      answers.set(record.offset, unreadableOutputs(output, record, reason, detail))
      metrics.decided('parked', reason, 1)
    }
    for (const record of batch.records) {
      const pending = codec.decodeRaw(record)
      const decoded = pending instanceof Promise ? await pending : pending
      if (decoded.kind === 'fault') {
        park(record, parkReasonOf(decoded.code), decoded.detail)
        continue
      }
      const fault = eventFault(decoded.value)
      if (fault !== null) {
        park(record, 'invalid_event', fault)
        continue
      }
      // Before it claims anything: a parked copy holds no key.
      if (sizeOf(record) > maxEventBytes) {
        park(record, 'record_too_large', `${sizeOf(record)} bytes are more than weir.events takes`)
        continue
      }
      const right = partitionOf(decoded.value.orderingKey, partitions)
      if (right !== batch.partition) {
        answers.set(record.offset, [forwardedRecord(output, record, right)])
        continue
      }
      const one = { record, event: decoded.value }
      const outside = this.#outsideWindow(one)
      // It claims nothing either: its key may have been forgotten, so it can be neither let through nor called a repeat.
      if (outside === null) judged.push(one)
      else this.#note(one, outside, output, answers, one.event.copies)
    }
    return { judged, answers }
  }

  #outsideWindow({ record, event }: Judged): Finding | null {
    // Whoever replays an event wants it now, however old it is.
    if (event.replayId !== null) return null
    const age = ageMs(event, record.timestampMs)
    const windowMs = this.#options.sources.windowMs(event)
    if (!isOutsideWindow(age, windowMs)) return null
    const detail = `the event was ${age} ms old when it was appended, its window is ${windowMs} ms`
    return { kind: 'parked', reason: 'outside_window', detail, original: null }
  }

  #answerFromCache(
    cache: KeyCache,
    first: Judged,
    output: OutputContext,
    answers: Answers,
    holders: Map<string, Holder & { payloadDigest: Buffer }>,
  ): boolean {
    const known = cache.find(first.event.eventKey, first.record.offset)
    if (known === null) return false
    const coordinate: Coordinate = { logId: output.logId, partition: output.partition, offset: known.offset }
    const holder = { deliveryId: known.deliveryId, coordinate, payloadDigest: known.payloadDigest }
    holders.set(first.event.eventKey.toString('latin1'), holder)
    const finding = this.#duplicate(first, holder)
    this.#note(first, finding, output, answers, first.event.copies)
    this.#options.metrics.cacheAnswered(1)
    return true
  }

  #answer(
    cache: KeyCache,
    first: Judged,
    answer: ClaimAnswer | undefined,
    output: OutputContext,
    answers: Answers,
    holders: Map<string, Holder & { payloadDigest: Buffer }>,
  ): void {
    if (answer === undefined) throw new WeirError('internal', 'the claim gave no answer for a key it was asked for')
    const { event, record } = first
    const here: Coordinate = { logId: output.logId, partition: output.partition, offset: record.offset }
    const onPayloadChange = this.#options.sources.onPayloadChange(event.tenant, event.source)
    const finding = judge(first, here, answer, onPayloadChange)
    const { holder } = answer
    holders.set(event.eventKey.toString('latin1'), holder)
    const { logId, partition, offset } = holder.coordinate
    if (logId === output.logId && partition === output.partition) {
      cache.remember(event.eventKey, { offset, deliveryId: holder.deliveryId, payloadDigest: holder.payloadDigest })
    }
    this.#note(first, finding, output, answers, event.copies)
  }

  /** Repeats inside the batch are duplicates of whoever holds the key; one decision counts them. */
  #answerRepeats(
    group: Repeats,
    output: OutputContext,
    answers: Answers,
    holders: Map<string, Holder & { payloadDigest: Buffer }>,
  ): void {
    const holder = holders.get(group.first.event.eventKey.toString('latin1'))
    if (holder === undefined) throw new WeirError('internal', 'a repeat has no holder')
    this.#note(group.last, this.#duplicate(group.last, holder), output, answers, group.copies)
  }

  #duplicate(judged: Judged, holder: Holder & { readonly payloadDigest: Buffer }): Finding {
    const { event } = judged
    const onPayloadChange = this.#options.sources.onPayloadChange(event.tenant, event.source)
    return duplicateOf(holder, !holder.payloadDigest.equals(event.payloadDigest), onPayloadChange)
  }

  #note(judged: Judged, finding: Finding, output: OutputContext, answers: Answers, copies: number): void {
    const { metrics } = this.#options
    metrics.decided(finding.kind, finding.kind === 'admitted' ? 'first' : finding.reason, copies)
    if (finding.kind === 'duplicate' && finding.payloadDiffers) metrics.payloadDiffers()
    answers.set(judged.record.offset, outputsOf(output, judged, finding, copies))
  }

  #outputContext(batch: StageBatch): OutputContext {
    const { topics, clock, codec } = this.#options
    return { topics, logId: batch.logId, partition: batch.partition, nowMs: clock.nowMs(), encoders: codec }
  }

  #cacheOf(batch: StageBatch): KeyCache {
    const known = this.#caches.get(batch.partition)
    if (known?.logId === batch.logId) return known.keys
    const keys = new KeyCache(this.#options.cacheEntries)
    this.#caches.set(batch.partition, { logId: batch.logId, keys })
    return keys
  }
}

/** Claims in one call of a rebuild: a restore from long ago must not meet the statement time-out. */
const restoreChunk = 1_000

/** As the broker counts a record, about. */
function sizeOf(record: LogRecord): number {
  const headers = record.headers.reduce((sum, [name, value]) => sum + name.length + value.length + 8, 0)
  return (record.key?.length ?? 0) + (record.value?.length ?? 0) + headers
}

function requestOf({ event, record }: Judged): ClaimRequest {
  return {
    eventKey: event.eventKey,
    eventKeyText: event.eventKeyText,
    tenant: event.tenant,
    source: event.source,
    deliveryId: event.deliveryId,
    offset: record.offset,
    payloadDigest: event.payloadDigest,
    appendedAtMs: record.timestampMs,
    businessKey: businessClaimOf(event),
  }
}

function parkReasonOf(code: string): ParkReason {
  return code === 'schema_unknown' || code === 'empty' ? code : 'malformed'
}
