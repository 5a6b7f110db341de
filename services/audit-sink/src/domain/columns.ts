// The columns a message can be found by. A leaf cannot gain one afterwards.
import { createHash } from 'node:crypto'
import { lengthPrefixed, parkedHeaders, type Header, type LogRecord, type TopicNames } from '@weir/core'
import type { Action, Contracts, Control, Decision, Outcome, RawEvent, Receipt, Release } from '@weir/schemas'

export interface Columns {
  readonly kind: string
  readonly tenant: string | null
  readonly source: string | null
  readonly eventKey: Buffer | null
  readonly eventKeyText: string | null
  readonly subject: string | null
  readonly run: string | null
  readonly rootEvent: string | null
  readonly cause: string | null
  readonly decisionId: string | null
  readonly deliveryId: string | null
  readonly agent: string | null
  readonly verdict: string | null
  readonly type: string | null
  readonly attempt: number | null
  readonly copies: number | null
  readonly traceId: string | null
  /** What a person should read about it, at most 2 KiB. */
  readonly detail: string | null
  readonly opaque: string | null
}

/** Contract of a topic's values; `null`: CloudEvents headers and payload bytes; `parked`: foreign bytes with reason headers. */
export type TopicContract = keyof Contracts | 'agent' | 'parked'

const maxIndexedBytes = 256
const maxDetailBytes = 2_048

export function contractOf(topics: TopicNames, topic: string): TopicContract {
  if (topic.startsWith(topics.agentPrefix)) return 'agent'
  const known: Record<string, TopicContract> = {
    [topics.raw]: 'RawEvent',
    [topics.events]: 'RawEvent',
    [topics.receipts]: 'Receipt',
    [topics.decisions]: 'Decision',
    [topics.released]: 'Release',
    [topics.outcomes]: 'Outcome',
    [topics.actions]: 'Action',
    [topics.control]: 'Control',
    [topics.parked]: 'parked',
  }
  return known[topic] ?? 'agent'
}

/** A text as it may be indexed: no NUL, well-formed, at most 256 bytes; a longer one stands as its digest. */
export function indexed(text: string | null | undefined): string | null {
  if (text === null || text === undefined || text === '') return null
  const clean = cleanText(text)
  if (Buffer.byteLength(clean) <= maxIndexedBytes) return clean
  return `sha256:${createHash('sha256').update(clean).digest('hex')}`
}

function cleanText(text: string): string {
  return text.toWellFormed().replaceAll('\u0000', '\\u0000')
}

function detailText(text: string): string | null {
  const clean = cleanText(text)
  if (clean === '') return null
  const bytes = Buffer.from(clean, 'utf8')
  return bytes.length <= maxDetailBytes
    ? clean
    : bytes.toString('utf8', 0, maxDetailBytes - 4).replace(/\ufffd+$/, '') + '…'
}

const empty: Omit<Columns, 'kind'> = {
  tenant: null,
  source: null,
  eventKey: null,
  eventKeyText: null,
  subject: null,
  run: null,
  rootEvent: null,
  cause: null,
  decisionId: null,
  deliveryId: null,
  agent: null,
  verdict: null,
  type: null,
  attempt: null,
  copies: null,
  traceId: null,
  detail: null,
  opaque: null,
}

const kinds: Record<TopicContract, string> = {
  RawEvent: 'received',
  Receipt: 'receipt',
  Decision: 'verdict',
  Release: 'released',
  Outcome: 'outcome',
  Action: 'action',
  Control: 'control',
  KeyState: 'state',
  agent: 'delivered',
  parked: 'parked',
}

/** Columns of a message whose value cannot be read: only the key is known. */
export function opaqueColumns(contract: TopicContract, record: LogRecord, reason: string): Columns {
  return {
    ...empty,
    kind: kinds[contract],
    eventKey: record.key?.length === 32 ? record.key : null,
    opaque: indexed(reason),
  }
}

interface Flow {
  readonly tenant?: string | null
  readonly source?: string | null
  readonly eventKey?: Buffer | null
  readonly eventKeyText?: string | null
  readonly type?: string | null
  readonly subject?: string | null
  readonly run?: string | null
  readonly rootEvent?: string | null
  readonly cause?: string | null
  readonly traceparent?: string | null
}

function flowColumns(kind: string, flow: Flow): Columns {
  return {
    ...empty,
    kind,
    tenant: indexed(flow.tenant),
    source: indexed(flow.source),
    eventKey: flow.eventKey?.length === 32 ? flow.eventKey : null,
    eventKeyText: indexed(flow.eventKeyText),
    type: indexed(flow.type),
    subject: indexed(flow.subject),
    run: indexed(flow.run),
    rootEvent: indexed(flow.rootEvent),
    cause: indexed(flow.cause),
    traceId: traceIdOf(flow.traceparent),
  }
}

/** The trace id of a W3C traceparent; anything else in the header is no id, and must not reach a text column as it is. */
function traceIdOf(traceparent: string | null | undefined): string | null {
  return /^[0-9a-f]{2}-([0-9a-f]{32})-/.exec(traceparent ?? '')?.[1] ?? null
}

export function rawEventColumns(event: RawEvent, isAdmitted: boolean): Columns {
  const verified = `verified with ${event.credentialId ?? 'no credential'}, key from ${event.keyOrigin}`
  return {
    ...flowColumns(isAdmitted ? 'admitted' : 'received', event),
    deliveryId: indexed(event.deliveryId),
    copies: event.copies,
    attempt: event.attempt,
    detail: detailText(verified),
  }
}

export function receiptColumns(receipt: Receipt): Columns {
  const original = receipt.originalDeliveryId === null ? '' : `; the original is delivery ${receipt.originalDeliveryId}`
  return {
    ...flowColumns('receipt', receipt),
    deliveryId: indexed(receipt.deliveryId),
    verdict: indexed(receipt.outcome),
    copies: receipt.count,
    detail: detailText(`answered ${receipt.status} ${receipt.reason}${original}`),
  }
}

export function decisionColumns(decision: Decision): Columns {
  return {
    ...flowColumns('verdict', decision),
    decisionId: indexed(decision.decisionId),
    deliveryId: indexed(decision.deliveryId),
    agent: indexed(decision.agent),
    verdict: indexed(`${decision.stage}:${decision.verdict}`),
    attempt: decision.attempt,
    copies: decision.copies,
    detail: detailText(reasonsText(decision)),
  }
}

function reasonsText(decision: Decision): string {
  return decision.reasons
    .map(({ detail, rule, limit, used }) => {
      const numbers = limit === null ? '' : ` (limit ${limit}${used === null ? '' : `, used ${used}`})`
      return `${detail}${rule === null || detail.includes(rule) ? '' : ` [${rule}]`}${detail.includes(String(limit)) ? '' : numbers}`
    })
    .join('; ')
}

export function releaseColumns(release: Release): Columns {
  return {
    // A release's own cause says why it came (due, approved …): it is no event.
    ...flowColumns('released', { ...release, cause: null }),
    decisionId: indexed(release.decisionId),
    deliveryId: indexed(release.admissionId),
    agent: indexed(release.agent),
    verdict: indexed(release.cause),
    attempt: release.attempt,
  }
}

export function outcomeColumns(outcome: Outcome): Columns {
  return {
    ...flowColumns('outcome', outcome),
    decisionId: indexed(outcome.decisionId),
    agent: indexed(outcome.agent),
    verdict: indexed(outcome.status),
    attempt: outcome.attempt,
    detail: detailText(`effects ${outcome.effects}${outcome.detail === null ? '' : `: ${outcome.detail}`}`),
  }
}

export function actionColumns(action: Action): Columns {
  return {
    ...flowColumns(`action_${action.phase}`, action),
    decisionId: indexed(action.decisionId),
    agent: indexed(action.agent),
    verdict: indexed(action.status),
    attempt: action.attempt,
    detail: detailText(`${action.tool} at ${action.destination}`),
  }
}

export function controlColumns(control: Control): Columns {
  const detail = detailText(
    `${control.kind} ${control.active ? 'on' : 'off'} for ${control.scope} by ${control.actor}: ${control.reason}`,
  )
  return { ...empty, kind: 'control', verdict: indexed(control.kind), detail }
}

/** Columns of a record in an agent's topic, from its CloudEvents headers. */
export function agentColumns(topics: TopicNames, record: LogRecord): Columns {
  const header = headerReader(record.headers)
  const id = header('ce_id')
  const eventKey = id !== null && /^[0-9a-f]{64}$/.test(id) ? Buffer.from(id, 'hex') : null
  return {
    ...flowColumns('delivered', {
      tenant: header('ce_tenantid'),
      source: header('ce_source'),
      eventKey,
      type: header('ce_type'),
      subject: header('ce_subject'),
      run: header('ce_runid'),
      rootEvent: header('ce_rooteventid'),
      cause: header('ce_causationid'),
      traceparent: header('traceparent'),
    }),
    decisionId: indexed(header('ce_decisionid')),
    agent: indexed(record.topic.slice(topics.agentPrefix.length)),
    attempt: attemptOf(header('ce_attempt')),
  }
}

function attemptOf(text: string | null): number | null {
  return text !== null && /^\d{1,9}$/.test(text) ? Number(text) : null
}

/** Columns of a parked record: why, from its headers; who, from the event when its bytes can still be read. */
export function parkedColumns(record: LogRecord, event: RawEvent | null): Columns {
  const header = headerReader(record.headers)
  const stage = header(parkedHeaders.stage) ?? 'unknown'
  const reason = header(parkedHeaders.reason) ?? 'unknown'
  const base = event === null ? opaqueColumns('parked', record, reason) : rawEventColumns(event, false)
  return {
    ...base,
    kind: 'parked',
    verdict: indexed(`${stage}:parked`),
    detail: detailText(`${reason}: ${header(parkedHeaders.detail) ?? 'no detail'}`),
    opaque: event === null ? indexed(reason) : null,
  }
}

function headerReader(headers: readonly Header[]): (name: string) => string | null {
  const found = new Map(headers.map(([name, value]) => [name, value]))
  return name => found.get(name)?.toString('utf8') ?? null
}

/** Headers as stored: count, then each name and value, length-prefixed. Duplicate and binary ones stay what they are. */
export function packHeaders(headers: readonly Header[]): Buffer {
  return lengthPrefixed([
    String(headers.length),
    ...headers.flatMap(([name, value]) => [Buffer.from(name, 'utf8'), value]),
  ])
}

export function unpackHeaders(bytes: Buffer): Header[] {
  const parts: Buffer[] = []
  for (let at = 0; at < bytes.length;) {
    const length = bytes.readUInt32BE(at)
    parts.push(bytes.subarray(at + 4, at + 4 + length))
    at += 4 + length
  }
  const headers: Header[] = []
  for (let i = 1; i + 1 < parts.length; i += 2) {
    headers.push([parts[i]?.toString('utf8') ?? '', parts[i + 1] ?? Buffer.alloc(0)])
  }
  return headers
}
