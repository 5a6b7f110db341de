// What every output of policy has: its topic's key, the coordinate of its input, and the fields that travel with an event.
import {
  decisionId,
  parkedHeadersOf,
  sha256,
  withInputHeader,
  type Header,
  type LogRecord,
  type OutRecord,
  type ParkedFacts,
  type TopicNames,
} from '@weir/core'
import { unreadFlowFields, type Decision } from '@weir/schemas'
import { reason } from './case.ts'

/** Where outputs of one batch come from and go to: all to the input's partition number. */
export interface OutputContext {
  readonly topics: TopicNames
  readonly logId: string
  readonly partition: number
  encodeDecision(decision: Decision): Buffer
}

/** A copy for people to decide about: the bytes as they were, and where they stood. */
export interface ParkedCopy extends Omit<ParkedFacts, 'code' | 'detail' | 'stage'> {
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: readonly Header[]
}

export interface ParkReason {
  readonly code: string
  readonly detail: string
}

export function decisionRecord(context: OutputContext, record: LogRecord, decision: Decision): OutRecord {
  const { topics, partition } = context
  const value = context.encodeDecision(decision)
  return { topic: topics.decisions, partition, key: decision.eventKey, value, headers: withInput(context, record, []) }
}

/** `record`: the input it follows from. */
export function parkedRecord(
  context: OutputContext,
  record: LogRecord,
  copy: ParkedCopy,
  { code, detail }: ParkReason,
): OutRecord {
  const added = parkedHeadersOf({ ...copy, code, detail, stage: 'policy' })
  const { topics, partition } = context
  const headers = withInput(context, record, [...copy.headers, ...added])
  return { topic: topics.parked, partition, key: copy.key, value: copy.value, headers }
}

/** The input record itself, parked as it is. */
export function copyOf(context: OutputContext, record: LogRecord, delivery: ParkedCopy['delivery'] = null): ParkedCopy {
  const { key, value, headers, topic, partition, offset, timestampMs } = record
  return { key, value, headers, topic, logId: context.logId, partition, offset, timestampMs, delivery }
}

export function withInput(context: OutputContext, record: LogRecord, headers: readonly Header[]): Header[] {
  return withInputHeader({ logId: context.logId, partition: context.partition, offset: record.offset }, headers)
}

/** What is not known of a record whose event cannot be read, or is not at hand. */
export const unknownFields = {
  ...unreadFlowFields,
  agent: null,
  agents: [],
  original: null,
  payloadDiffers: false,
  copies: 1,
  attempt: 0,
  effects: '',
  charges: [],
  notBeforeMs: null,
  waitingEvent: null,
  delivery: null,
  report: null,
  configVersion: '',
} as const

/** A record that cannot be judged is parked as it is. */
export function unreadableOutputs(
  context: OutputContext,
  record: LogRecord,
  fault: ParkReason & { readonly gate?: string },
  atMs: number,
): OutRecord[] {
  const digest = sha256(record.value ?? Buffer.alloc(0))
  const place = `${context.logId}:${context.partition}:${record.offset}`
  const decision: Decision = {
    ...unknownFields,
    decisionId: decisionId(digest, place, '', 'policy'),
    stage: 'policy',
    eventKey: digest,
    eventKeyText: `unreadable/${place}`,
    verdict: 'parked',
    reasons: [reason(fault.gate ?? 'schema', fault.code, fault.detail)],
    inputTopic: record.topic,
    input: { logId: context.logId, partition: context.partition, offset: record.offset },
    payloadDigest: digest,
    atMs,
    appendedAtMs: record.timestampMs,
  }
  return [parkedRecord(context, record, copyOf(context, record), fault), decisionRecord(context, record, decision)]
}
