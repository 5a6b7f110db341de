import type { OutRecord } from '@weir/core'
import { flowFieldsOf, type Decision, type RawEvent } from '@weir/schemas'
import { reason } from './case.ts'
import type { OpenDelivery, Report, Settlement, StoredOutcome } from './outcome.ts'
import { decisionRecord, parkedRecord, unknownFields, unreadableOutputs, type OutputContext } from './records.ts'

/** Gate named by decisions about reports. */
export const outcomeGate = 'outcome'

const details: Record<StoredOutcome['result'], string> = {
  completed: 'the agent reports that it is done',
  again: 'the agent reports a failure without effects: it gets the event again',
  parked: 'a person must decide',
  late: 'the report came after the delivery had ended or moved on; nothing changes',
  moot: 'the deadline passed after the report',
}

const parkDetails: Readonly<Record<string, string>> = {
  no_report: 'the agent did not report in time: whether it acted is not known',
  effects_unknown: 'the agent failed and does not know whether it acted',
  effects_done: 'the agent failed after it had acted',
  attempts_exhausted: 'the agent failed without effects as often as its route allows',
}

/**
 * What goes out for one report. A pure function of the record and the rows: a re-read emits the same. `event` is what the delivery
 * keeps while it is open; a report that changes nothing is told without it.
 */
export function reportOutputs(
  context: OutputContext,
  report: Report,
  settlement: Settlement,
  event: RawEvent | null,
): OutRecord[] {
  const { record } = report
  switch (settlement.kind) {
    case 'unknown': {
      const fault = { gate: outcomeGate, code: 'unknown_delivery', detail: settlement.detail }
      return unreadableOutputs(context, record, fault, record.timestampMs)
    }
    case 'repeated':
      return []
    case 'contradicted': {
      const { delivery, row } = settlement
      const said = row.effects === '' ? row.status : `${row.status} with effects ${row.effects}`
      const why = { result: 'contradictory', code: 'contradictory', detail: `the first report stands: ${said}` }
      return [decisionRecord(context, record, decisionOf(context, { report, delivery, event: null, row: null }, why))]
    }
    case 'settled': {
      const { row, delivery } = settlement
      if (row.result === 'moot') return []
      const detail = parkDetails[row.code] ?? details[row.result]
      const why = { result: row.result, code: row.code === '' ? row.result : row.code, detail }
      const decided = decisionRecord(context, record, decisionOf(context, { report, delivery, event, row }, why))
      if (row.result !== 'parked' || delivery === null) return [decided]
      return [parkedRecord(context, record, parkedCopy(context, report, delivery), why), decided]
    }
  }
}

/** The event as it stood in weir.events, so that it can be sent in again. */
function parkedCopy(context: OutputContext, { outcome, record }: Report, delivery: OpenDelivery) {
  const { decisionId, agent, event, origin } = delivery
  return {
    key: outcome.eventKey,
    value: event,
    headers: [],
    topic: context.topics.events,
    ...origin,
    timestampMs: record.timestampMs,
    delivery: { agent, decisionId },
  }
}

const verdicts: Readonly<Record<string, string>> = { completed: 'completed', again: 'defer', parked: 'parked' }

function decisionOf(
  context: OutputContext,
  from: {
    readonly report: Report
    readonly delivery: OpenDelivery | null
    readonly event: RawEvent | null
    readonly row: StoredOutcome | null
  },
  why: { readonly result: string; readonly code: string; readonly detail: string },
): Decision {
  const { report, delivery, event, row } = from
  const { outcome, record, kind, status, effects } = report
  const { decisionId, attempt, tenant, agent, eventKey, eventKeyText, orderingKey, run, rootEvent, cause } = outcome
  const isOver = row === null || row.result === 'late'
  return {
    ...unknownFields,
    type: 'outcome',
    tenant,
    eventKey,
    eventKeyText,
    orderingKey,
    run,
    rootEvent,
    cause,
    payloadDigest: Buffer.alloc(32),
    ...(event === null ? {} : { ...flowFieldsOf(event), admissionId: event.deliveryId }),
    decisionId,
    stage: 'policy',
    agent,
    agents: [agent],
    attempt,
    verdict: verdicts[why.result] ?? 'ignored',
    reasons: [
      reason(outcomeGate, why.code, why.detail),
      ...(outcome.detail === null ? [] : [reason('agent', status, outcome.detail)]),
    ],
    inputTopic: record.topic,
    input: { logId: context.logId, partition: context.partition, offset: record.offset },
    original: delivery?.origin ?? null,
    effects,
    notBeforeMs: row?.notBeforeMs ?? null,
    waitingEvent: row?.result === 'again' ? (delivery?.event ?? null) : null,
    delivery: isOver || delivery === null ? null : termsOf(delivery),
    report: { kind, status, result: why.result, code: row?.code ?? why.code },
    atMs: row?.atMs ?? record.timestampMs,
    appendedAtMs: record.timestampMs,
    traceparent: outcome.traceparent,
  }
}

function termsOf({ deliveries: number, maxAttempts, backoffMs, deadlineMs }: OpenDelivery): Decision['delivery'] {
  return { number, maxAttempts, backoffMs, deadlineMs }
}
