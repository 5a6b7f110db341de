import {
  decisionId,
  parkedHeadersOf,
  sha256,
  withInputHeader,
  type Coordinate,
  type Header,
  type LogRecord,
  type OutRecord,
  type TopicNames,
} from '@weir/core'
import { flowFieldsOf, unreadFlowFields, type Decision, type KeyState } from '@weir/schemas'
import type { Judged } from './batch.ts'
import type { Finding, ParkReason } from './judge.ts'

interface Encoders {
  encodeDecision(decision: Decision): Buffer
  encodeState(state: KeyState): Buffer
}

/** What goes out for one finding. All of it goes to the input's partition number. */
export interface OutputContext {
  readonly topics: TopicNames
  readonly logId: string
  readonly partition: number
  /** The one clock reading of this attempt. */
  readonly nowMs: number
  readonly encoders: Encoders
}

function coordinateOf(context: OutputContext, record: LogRecord): Coordinate {
  return { logId: context.logId, partition: context.partition, offset: record.offset }
}

export function outputsOf(context: OutputContext, judged: Judged, finding: Finding, copies: number): OutRecord[] {
  const decision = decisionOf(context, judged, finding, copies)
  const decided = decisionRecord(context, judged.record, decision)
  switch (finding.kind) {
    case 'admitted':
      return [eventRecord(context, judged), stateRecord(context, judged, 'admitted'), decided]
    case 'duplicate':
      // Its event key was won, so it has a public state; only the business key was lost.
      return finding.reason === 'business_key' ? [stateRecord(context, judged, 'duplicate'), decided] : [decided]
    case 'parked':
      return [parkedRecord(context, judged.record, finding.reason, finding.detail), decided]
  }
}

/** A record that cannot be judged is parked as it is; its decision names what can be known without reading it. */
export function unreadableOutputs(
  context: OutputContext,
  record: LogRecord,
  reason: ParkReason,
  detail: string,
): OutRecord[] {
  const decision = unreadableDecision(context, record, reason, detail)
  return [parkedRecord(context, record, reason, detail), decisionRecord(context, record, decision)]
}

/** A record in the wrong partition (a foreign producer's hash) is forwarded to the right one, where it will be judged. */
export function forwardedRecord(context: OutputContext, record: LogRecord, partition: number): OutRecord {
  const { topic, key, value } = record
  return { topic, partition, key, value, headers: withInput(context, record, record.headers) }
}

function eventRecord(context: OutputContext, { record, event }: Judged): OutRecord {
  const { topics, partition } = context
  const headers = withInput(context, record, record.headers)
  return { topic: topics.events, partition, key: Buffer.from(event.orderingKey, 'utf8'), value: record.value, headers }
}

function stateRecord(context: OutputContext, { record, event }: Judged, state: 'admitted' | 'duplicate'): OutRecord {
  const value = context.encoders.encodeState({
    tenant: event.tenant,
    source: event.source,
    eventKey: event.eventKey,
    eventKeyText: event.eventKeyText,
    deliveryId: event.deliveryId,
    input: coordinateOf(context, record),
    payloadDigest: event.payloadDigest,
    firstSeenMs: record.timestampMs,
    state,
  })
  const { topics, partition } = context
  return { topic: topics.dedupState, partition, key: event.eventKey, value, headers: withInput(context, record, []) }
}

function decisionRecord(context: OutputContext, record: LogRecord, decision: Decision): OutRecord {
  const { topics, partition, encoders } = context
  const value = encoders.encodeDecision(decision)
  return { topic: topics.decisions, partition, key: decision.eventKey, value, headers: withInput(context, record, []) }
}

function parkedRecord(context: OutputContext, record: LogRecord, reason: ParkReason, detail: string): OutRecord {
  const { topic, timestampMs } = record
  const place = coordinateOf(context, record)
  const added = parkedHeadersOf({ ...place, code: reason, detail, stage: 'dedup', topic, timestampMs, delivery: null })
  const headers = withInput(context, record, [...record.headers, ...added])
  const { topics, partition } = context
  return { topic: topics.parked, partition, key: record.key, value: record.value, headers }
}

function withInput(context: OutputContext, record: LogRecord, headers: readonly Header[]): Header[] {
  return withInputHeader(coordinateOf(context, record), headers)
}

function decisionOf(context: OutputContext, judged: Judged, finding: Finding, copies: number): Decision {
  const { record, event } = judged
  const original = finding.kind === 'admitted' ? null : finding.original
  return {
    ...flowFieldsOf(event),
    decisionId: decisionId(event.eventKey, event.deliveryId, '', 'dedup'),
    admissionId: original?.deliveryId ?? event.deliveryId,
    verdict: finding.kind,
    reasons: reasonsOf(finding),
    original: original?.coordinate ?? null,
    payloadDiffers: finding.kind === 'duplicate' && finding.payloadDiffers,
    copies,
    ...inputOf(context, record),
  }
}

function reasonsOf(finding: Finding): Decision['reasons'] {
  if (finding.kind === 'admitted') return []
  const none = { rule: null, limit: null, used: null, windowStartMs: null }
  if (finding.kind === 'parked') {
    return [{ gate: 'dedup', code: finding.reason, detail: finding.detail, ...none }]
  }
  const { original, reason } = finding
  const what = reason === 'event_key' ? 'the event key' : 'the business key'
  const detail = `${what} was won by delivery ${original.deliveryId} before`
  return [{ gate: 'duplicate', code: reason, detail, ...none }]
}

function inputOf(context: OutputContext, record: LogRecord) {
  return {
    stage: 'dedup',
    agent: null,
    agents: [],
    inputTopic: record.topic,
    input: coordinateOf(context, record),
    attempt: 0,
    effects: '',
    charges: [],
    notBeforeMs: null,
    waitingEvent: null,
    delivery: null,
    report: null,
    configVersion: '',
    atMs: context.nowMs,
    appendedAtMs: record.timestampMs,
  }
}

function unreadableDecision(context: OutputContext, record: LogRecord, reason: ParkReason, detail: string): Decision {
  const digest = sha256(record.value ?? Buffer.alloc(0))
  const eventKey = record.key?.length === 32 ? record.key : digest
  const place = `${context.logId}:${context.partition}:${record.offset}`
  return {
    ...unreadFlowFields,
    ...inputOf(context, record),
    decisionId: decisionId(eventKey, place, '', 'dedup'),
    eventKey,
    eventKeyText: `unreadable/${place}`,
    verdict: 'parked',
    reasons: reasonsOf({ kind: 'parked', reason, detail, original: null }),
    original: null,
    payloadDigest: digest,
    payloadDiffers: false,
    copies: 1,
  }
}
