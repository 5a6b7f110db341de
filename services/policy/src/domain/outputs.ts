import { agentTopic, type OutRecord } from '@weir/core'
import { flowFieldsOf, type Decision } from '@weir/schemas'
import type { StoredVerdict } from '../ports.ts'
import { reason, type Item, type Reason } from './case.ts'
import { cloudEventHeaders } from './cloud-event.ts'
import { copyOf, decisionRecord, parkedRecord, withInput, type OutputContext } from './records.ts'
import { topicGate } from './restore.ts'

/** What goes out for one stored verdict. A pure function of the record and the row: a re-read emits the same. */
export function outputsOf(context: OutputContext, item: Item, row: StoredVerdict): OutRecord[] {
  const decided = decisionRecord(context, item.record, decisionOf(item, row))
  if (row.override !== null) {
    return [parkedRecord(context, item.record, copyOf(context, item.record, row), row.override), decided]
  }
  return row.verdict === 'allow' ? [agentRecord(context, item, row), decided] : [decided]
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

/** The decision carries all that the rows hold, so that they can be made again from it. */
function decisionOf(item: Item, row: StoredVerdict): Decision {
  const { event, record } = item
  const isParked = row.override !== null
  const keepsEvent = row.verdict === 'defer' || (row.verdict === 'allow' && row.delivery !== null)
  return {
    ...flowFieldsOf(event),
    decisionId: row.decisionId,
    stage: 'policy',
    admissionId: item.admissionId,
    agent: row.agent === '' ? null : row.agent,
    agents: row.agents,
    verdict: isParked ? 'parked' : row.verdict,
    reasons: row.override === null ? row.reasons : [refused(row.override), ...row.reasons],
    inputTopic: record.topic,
    input: { logId: row.logId, partition: row.partition, offset: row.offset },
    original: item.release === null ? null : item.origin,
    payloadDiffers: false,
    copies: 1,
    attempt: row.attempt,
    effects: '',
    charges: isParked ? [] : row.charges,
    notBeforeMs: row.notBeforeMs,
    waitingEvent: keepsEvent && !isParked ? item.eventBytes : null,
    delivery: row.delivery,
    report: null,
    configVersion: row.configVersion,
    atMs: row.atMs,
    appendedAtMs: record.timestampMs,
  }
}

function refused(override: { readonly code: string; readonly detail: string }): Reason {
  return reason(topicGate, override.code, override.detail)
}
