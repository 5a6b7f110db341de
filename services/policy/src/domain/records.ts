// What every output of policy has: its topic's key, the coordinate of its input, and the fields that travel with an event.
import {
  decisionId,
  inputHeader,
  parkedHeaders,
  sha256,
  type Header,
  type LogRecord,
  type OutRecord,
  type TopicNames,
} from '@weir/core'
import type { Decision, RawEvent } from '@weir/schemas'
import { reason } from './case.ts'

/** Where outputs of one batch come from and go to: all to the input's partition number. */
export interface OutputContext {
  readonly topics: TopicNames
  readonly logId: string
  readonly partition: number
  encodeDecision(decision: Decision): Buffer
}

/** A copy for people to decide about: the bytes as they were, and where they stood. */
export interface ParkedCopy {
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: readonly Header[]
  readonly topic: string
  readonly logId: string
  readonly partition: number
  readonly offset: number
  readonly timestampMs: number
  /** Of one delivery: which. */
  readonly delivery: { readonly agent: string; readonly decisionId: string } | null
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
  const facts: Record<string, string> = {
    [parkedHeaders.reason]: code,
    [parkedHeaders.detail]: detail,
    [parkedHeaders.stage]: 'policy',
    [parkedHeaders.topic]: copy.topic,
    [parkedHeaders.logId]: copy.logId,
    [parkedHeaders.partition]: String(copy.partition),
    [parkedHeaders.offset]: String(copy.offset),
    [parkedHeaders.timestampMs]: String(copy.timestampMs),
    ...(copy.delivery === null
      ? {}
      : { [parkedHeaders.agent]: copy.delivery.agent, [parkedHeaders.decisionId]: copy.delivery.decisionId }),
  }
  const added = Object.entries(facts).map(([name, text]): Header => [name, Buffer.from(text, 'utf8')])
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
  const value = `${context.logId}:${context.partition}:${record.offset}`
  return [...headers.filter(([name]) => name !== inputHeader), [inputHeader, Buffer.from(value, 'utf8')]]
}

/** What a decision says of its event. */
export function flowFieldsOf(event: RawEvent): Pick<Decision, FlowField> {
  const { tenant, source, eventKey, eventKeyText, type, subject, object, version, run, rootEvent, cause, hops } = event
  const { deliveryId, orderingKey, payloadDigest, businessKey, generation, traceparent } = event
  return {
    tenant,
    source,
    eventKey,
    eventKeyText,
    type,
    subject,
    object,
    version,
    run,
    rootEvent,
    cause,
    hops,
    deliveryId,
    orderingKey,
    payloadDigest,
    businessKey,
    generation,
    traceparent,
  }
}

type FlowField = Extract<keyof RawEvent, keyof Decision> & Exclude<keyof Decision, 'copies' | 'attempt'>

/** What is not known of a record whose event cannot be read, or is not at hand. */
export const unknownFields = {
  tenant: '',
  source: '',
  type: 'unreadable',
  subject: null,
  object: null,
  version: null,
  run: null,
  rootEvent: null,
  cause: null,
  hops: 0,
  admissionId: '',
  deliveryId: '',
  orderingKey: '',
  agent: null,
  agents: [],
  original: null,
  payloadDiffers: false,
  businessKey: null,
  copies: 1,
  attempt: 0,
  generation: 0,
  effects: '',
  charges: [],
  notBeforeMs: null,
  waitingEvent: null,
  delivery: null,
  report: null,
  configVersion: '',
  traceparent: null,
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
