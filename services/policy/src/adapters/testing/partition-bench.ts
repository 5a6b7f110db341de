// For tests: one partition number with its logs in memory, driven step by step as the runner would, crashes included.
import {
  decisionId,
  eventKey,
  keyText,
  orderingKeyText,
  sha256,
  topicNames,
  type ClaimContext,
  type LogPosition,
  type LogRecord,
  type OutRecord,
  type Ownership,
  type OwnerStore,
  type StageBatch,
} from '@weir/core'
import type { Codec } from '@weir/kafka'
import type { Decision, Outcome, RawEvent } from '@weir/schemas'
import { outcomeRecord, type Said } from '../../domain/outcome-record.ts'
import { PolicyService, type PolicyOptions } from '../../service.ts'

export const topics = topicNames()

type LogName = 'events' | 'released' | 'outcomes'

export interface BenchOptions extends Omit<PolicyOptions, 'topics' | 'publisher' | 'partitions'> {
  readonly rawCodec: Codec
  readonly owners: OwnerStore
  readonly partition: number
  readonly logIds: Readonly<Record<LogName, string>>
}

export class PartitionBench {
  readonly #options: BenchOptions
  readonly logs: Record<LogName, LogRecord[]> = { events: [], released: [], outcomes: [] }
  readonly committed: Record<LogName, number> = { events: 0, released: 0, outcomes: 0 }
  /** What was committed, in order. */
  readonly outputs: OutRecord[] = []
  /** Appends to the released and outcomes logs. */
  readonly publisher = {
    publish: (records: readonly OutRecord[]): Promise<void> => {
      for (const record of records) this.#append(record.topic === topics.outcomes ? 'outcomes' : 'released', record)
      return Promise.resolve()
    },
  }
  handler: PolicyService
  ownership: Ownership

  constructor(options: BenchOptions) {
    this.#options = options
    this.handler = this.newHandler()
    this.ownership = { stage: 'policy', partition: options.partition, epoch: 0n }
  }

  newHandler(overrides: Partial<PolicyOptions> = {}): PolicyService {
    return new PolicyService({ ...this.#options, topics, partitions: 6, publisher: this.publisher, ...overrides })
  }

  /** Another instance becomes the owner: a new handler that remembers nothing. */
  async takeOver(overrides: Partial<PolicyOptions> = {}): Promise<void> {
    const { ownership } = await this.#options.owners.takeOver('policy', this.#options.partition)
    this.ownership = ownership
    await this.#options.owners.advance(ownership, this.positions())
    this.handler = this.newHandler(overrides)
    await this.handler.begin(ownership)
  }

  positions(): LogPosition[] {
    return (['events', 'released', 'outcomes'] as const).map(name => ({
      topic: topics[name],
      logId: this.#options.logIds[name],
      emittedBelow: this.committed[name],
      claimedAtMs: 0,
    }))
  }

  context(ownership = this.ownership): ClaimContext {
    return { ownership, committed: this.positions() }
  }

  send(event: RawEvent): LogRecord {
    const { rawCodec } = this.#options
    const key = Buffer.from(event.orderingKey)
    return this.#append('events', { key, value: rawCodec.encode('RawEvent', event), headers: [] })
  }

  /** What an agent reports, as policy's HTTP side would write it. */
  report(outcome: Outcome): LogRecord {
    const key = Buffer.from(outcome.orderingKey)
    return this.#append('outcomes', { key, value: this.#options.rawCodec.encode('Outcome', outcome), headers: [] })
  }

  /** What triage says about an event of `eventOf(name)`: that it is done, unless told otherwise. */
  says(name: string, said: Partial<Said> = {}): void {
    const base = { decisionId: deliveryIdOf(name), attempt: 0, agent: 'triage', status: 'completed' } as const
    this.report(outcomeRecord({ ...base, effects: '', detail: null, atMs: 1, ...said }, eventOf(name)))
  }

  #append(name: LogName, record: Pick<OutRecord, 'key' | 'value' | 'headers'>): LogRecord {
    const { partition } = this.#options
    const { key, value, headers } = record
    const offset = this.logs[name].length
    const appended = { topic: topics[name], partition, offset, timestampMs: 1_000 + offset, key, value, headers }
    this.logs[name].push(appended)
    return appended
  }

  batch(name: LogName, limit = 1_000): StageBatch {
    const from = this.committed[name]
    const records = this.logs[name].slice(from, from + limit)
    return { topic: topics[name], logId: this.#options.logIds[name], partition: this.#options.partition, records }
  }

  /** Claims without committing: what a crash after the claim leaves. */
  async claim(name: LogName, limit?: number): Promise<readonly OutRecord[]> {
    const verdict = await this.handler.claim(this.batch(name, limit), this.context())
    if (verdict.kind === 'fenced') throw new Error('fenced')
    return verdict.records
  }

  async step(name: LogName, limit?: number): Promise<readonly OutRecord[]> {
    const batch = this.batch(name, limit)
    if (batch.records.length === 0) return []
    const records = await this.claim(name, limit)
    await this.commit(name, batch, records)
    return records
  }

  async commit(name: LogName, batch: StageBatch, records: readonly OutRecord[]): Promise<void> {
    this.outputs.push(...records)
    this.committed[name] = (batch.records.at(-1)?.offset ?? -1) + 1
    await this.handler.committed(batch, this.context())
  }

  tick(): Promise<void> {
    return this.handler.tick(this.ownership, this.positions())
  }

  /** Lets the releaser and both inputs run once. */
  async round(): Promise<void> {
    await this.tick()
    await this.step('events')
    await this.step('released')
    await this.step('outcomes')
  }

  decisions(records: readonly OutRecord[] = this.outputs): Decision[] {
    return records
      .filter(record => record.topic === topics.decisions)
      .map(record => {
        const decoded = this.#options.rawCodec.decode('Decision', record.value)
        if (decoded instanceof Promise || decoded.kind === 'fault') throw new Error('a decision is not readable')
        return decoded.value
      })
  }

  /** Subjects delivered to an agent, in order. */
  delivered(agent: string, records: readonly OutRecord[] = this.outputs): string[] {
    return records
      .filter(record => record.topic === `${topics.agentPrefix}${agent}`)
      .map(record => record.headers.find(([name]) => name === 'ce_subject')?.[1].toString() ?? '')
  }

  asOutputs(): LogRecord[] {
    const { partition } = this.#options
    return this.outputs.map((record, offset) => ({ ...record, partition, offset, timestampMs: 1_000 + offset }))
  }
}

/** Decision id of the delivery to triage of an event of `eventOf(name)`. */
export function deliveryIdOf(name: string): string {
  const { eventKey: key, deliveryId } = eventOf(name)
  return decisionId(key, deliveryId, 'triage', 'policy')
}

/** An event whose subject is its name. */
export function eventOf(
  name: string,
  overrides: { readonly tenant?: string; readonly object?: string; readonly run?: string } & Partial<RawEvent> = {},
): RawEvent {
  const { tenant = 'acme', object = name } = overrides
  const key = eventKey(tenant, 'github', name)
  const data = Buffer.from(`{"name":"${name}"}`)
  return {
    tenant,
    source: 'github',
    eventKey: key,
    eventKeyText: keyText([tenant, 'github', name]),
    eventId: name,
    keyOrigin: 'header',
    deliveryId: decisionId(key, name, '', 'dedup'),
    orderingKey: orderingKeyText(tenant, object),
    type: 'issues.opened',
    subject: name,
    object,
    version: null,
    run: null,
    rootEvent: null,
    cause: null,
    hops: 0,
    businessKey: null,
    secondKey: null,
    payloadDigest: sha256(data),
    contentType: 'application/json',
    data,
    headers: [],
    receivedAtMs: 1e3,
    eventTimeMs: 0xdd9aa6e07b,
    eventTimeSigned: false,
    copies: 1,
    credentialId: null,
    attempt: 0,
    generation: 0,
    replayId: null,
    traceparent: null,
    tracestate: null,
    ...overrides,
  }
}
