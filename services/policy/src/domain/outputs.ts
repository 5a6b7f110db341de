import {
  agentTopic,
  decisionId,
  inputHeader,
  parkedHeaders,
  sha256,
  type Header,
  type LogRecord,
  type OutRecord,
  type TopicNames,
} from '@weir/core'
import type { Decision } from '@weir/schemas'
import type { StoredVerdict } from '../ports.ts'
import { reason, type Item, type Reason } from './case.ts'
import { cloudEventHeaders } from './cloud-event.ts'
import { topicGate } from './restore.ts'

/** Where outputs of one batch come from and go to: all to the input's partition number. */
export interface OutputContext {
  readonly topics: TopicNames
  readonly logId: string
  readonly partition: number
  encodeDecision(decision: Decision): Buffer
}

/** What goes out for one stored verdict. A pure function of the record and the row: a re-read emits the same. */
export function outputsOf(context: OutputContext, item: Item, row: StoredVerdict): OutRecord[] {
  const decided = decisionRecord(context, item.record, decisionOf(item, row))
  if (row.override !== null) {
    const { code, detail } = row.override
    return [parkedRecord(context, item.record, code, detail), decided]
  }
  return row.verdict === 'allow' ? [agentRecord(context, item, row), decided] : [decided]
}

/** A record that cannot be judged is parked as it is. */
export function unreadableOutputs(
  context: OutputContext,
  record: LogRecord,
  fault: { readonly code: string; readonly detail: string },
  atMs: number,
): OutRecord[] {
  const decision = unreadableDecision(context, record, fault, atMs)
  return [parkedRecord(context, record, fault.code, fault.detail), decisionRecord(context, record, decision)]
}

function agentRecord(context: OutputContext, item: Item, row: StoredVerdict): OutRecord {
  return {
    topic: agentTopic(context.topics, row.agent),
    partition: context.partition,
    key: Buffer.from(item.event.orderingKey, 'utf8'),
    value: item.event.data,
    headers: withInput(context, item.record, cloudEventHeaders(item.event, row)),
  }
}

function decisionRecord(context: OutputContext, record: LogRecord, decision: Decision): OutRecord {
  const { topics, partition } = context
  const value = context.encodeDecision(decision)
  return { topic: topics.decisions, partition, key: decision.eventKey, value, headers: withInput(context, record, []) }
}

function parkedRecord(context: OutputContext, record: LogRecord, code: string, detail: string): OutRecord {
  const facts: Record<string, string> = {
    [parkedHeaders.reason]: code,
    [parkedHeaders.detail]: detail,
    [parkedHeaders.stage]: 'policy',
    [parkedHeaders.topic]: record.topic,
    [parkedHeaders.logId]: context.logId,
    [parkedHeaders.partition]: String(record.partition),
    [parkedHeaders.offset]: String(record.offset),
    [parkedHeaders.timestampMs]: String(record.timestampMs),
  }
  const added = Object.entries(facts).map(([name, text]): Header => [name, Buffer.from(text, 'utf8')])
  const { topics, partition } = context
  const headers = withInput(context, record, [...record.headers, ...added])
  return { topic: topics.parked, partition, key: record.key, value: record.value, headers }
}

function withInput(context: OutputContext, record: LogRecord, headers: readonly Header[]): Header[] {
  const value = `${context.logId}:${context.partition}:${record.offset}`
  return [...headers.filter(([name]) => name !== inputHeader), [inputHeader, Buffer.from(value, 'utf8')]]
}

/** The decision carries all that the rows hold, so that they can be made again from it. */
function decisionOf(item: Item, row: StoredVerdict): Decision {
  const { event, record } = item
  const { tenant, source, eventKey, eventKeyText, type, subject, object, version, run, rootEvent, cause, hops } = event
  const { deliveryId, orderingKey, payloadDigest, businessKey, generation, traceparent } = event
  const isParked = row.override !== null
  const isWaiting = row.verdict === 'defer'
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
    decisionId: row.decisionId,
    stage: 'policy',
    admissionId: item.admissionId,
    agent: row.agent === '' ? null : row.agent,
    agents: row.agents,
    verdict: isParked ? 'parked' : row.verdict,
    reasons: row.override === null ? row.reasons : [refused(row.override), ...row.reasons],
    inputTopic: record.topic,
    input: {
      logId: row.logId,
      partition: row.partition,
      offset: row.offset,
    },
    original: item.release === null ? null : item.origin,
    payloadDiffers: false,
    copies: 1,
    attempt: row.attempt,
    effects: '',
    charges: isParked ? [] : row.charges,
    notBeforeMs: row.notBeforeMs,
    waitingEvent: isWaiting ? item.eventBytes : null,
    configVersion: row.configVersion,
    atMs: row.atMs,
    appendedAtMs: record.timestampMs,
  }
}

function refused(override: { readonly code: string; readonly detail: string }): Reason {
  return reason(topicGate, override.code, override.detail)
}

/** What is not known of a record that cannot be read. */
const unknownFields = {
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
  configVersion: '',
  traceparent: null,
} as const

function unreadableDecision(
  context: OutputContext,
  record: LogRecord,
  fault: { readonly code: string; readonly detail: string },
  atMs: number,
): Decision {
  const digest = sha256(record.value ?? Buffer.alloc(0))
  const place = `${context.logId}:${context.partition}:${record.offset}`
  return {
    ...unknownFields,
    decisionId: decisionId(digest, place, '', 'policy'),
    stage: 'policy',
    eventKey: digest,
    eventKeyText: `unreadable/${place}`,
    verdict: 'parked',
    reasons: [reason('schema', fault.code, fault.detail)],
    inputTopic: record.topic,
    input: { logId: context.logId, partition: context.partition, offset: record.offset },
    payloadDigest: digest,
    atMs,
    appendedAtMs: record.timestampMs,
  }
}
