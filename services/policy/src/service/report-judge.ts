import { partitionOf, type ClaimContext, type LogRecord, type OutRecord, type StageBatch } from '@weir/core'
import type { Outcome, RawEvent } from '@weir/schemas'
import { outcomeKey, settleReports, type Report, type Settlement } from '../domain/outcome.ts'
import { unreadableOutputs, withInput, type OutputContext } from '../domain/records.ts'
import { reportOutputs } from '../domain/report-outputs.ts'
import { outcomeFault } from '../domain/validate.ts'
import type { PolicyOptions } from './policy-options.ts'

export interface JudgedReports {
  readonly records: readonly OutRecord[]
  /** Deliveries that these reports end. */
  readonly ended: readonly string[]
  /** One failed without effects, and waits for its next attempt. */
  readonly hasWaiting: boolean
}

type Sorted =
  | { readonly kind: 'report'; readonly report: Report }
  | { readonly kind: 'parked'; readonly outputs: readonly OutRecord[] }

/** Decodes and settles a batch of weir.outcomes. Null when the epoch is no longer mine. */
export async function judgeReports(
  options: PolicyOptions,
  batch: StageBatch,
  context: ClaimContext,
  output: OutputContext,
): Promise<JudgedReports | null> {
  const { deliveries: ledger, metrics, faultPoint } = options
  const sorted: Sorted[] = []
  for (const record of batch.records) sorted.push(await sort(options, record, output))
  const reports = sorted.flatMap(item => (item.kind === 'report' ? [item.report] : []))
  const keys = reports.map(({ outcome: { decisionId, attempt }, kind }) => ({ decisionId, attempt, kind }))
  const look = await ledger.lookReports(batch, keys)
  const { logId, partition } = batch
  const settlements = settleReports(reports, look, { logId, partition, atMs: look.nowMs })
  const known = new Set(look.outcomes.map(outcomeKey))
  const rows = settlements.flatMap(answer =>
    answer.kind === 'settled' && !known.has(outcomeKey(answer.row)) ? [answer.row] : [],
  )
  faultPoint('policy.before-claim')
  if (!(await ledger.claimReports(batch, context, rows, look.nowMs))) return null
  for (const settlement of settlements) metrics.reported(resultOf(settlement))
  const records: OutRecord[] = []
  let next = 0
  for (const item of sorted) {
    const settlement = item.kind === 'report' ? settlements[next++] : undefined
    if (item.kind === 'parked') records.push(...item.outputs)
    else if (settlement !== undefined) records.push(...(await outputsOf(options, output, item.report, settlement)))
  }
  const results = settlements.flatMap(answer => (answer.kind === 'settled' ? [answer.row] : []))
  return {
    records,
    ended: results.flatMap(({ decisionId, result }) =>
      result === 'completed' || result === 'parked' ? [decisionId] : [],
    ),
    hasWaiting: results.some(({ result }) => result === 'again'),
  }
}

function resultOf(settlement: Settlement): string {
  return settlement.kind === 'settled' ? settlement.row.result : settlement.kind
}

async function sort({ codec }: PolicyOptions, record: LogRecord, output: OutputContext): Promise<Sorted> {
  const parked = (code: string, detail: string): Sorted => {
    return { kind: 'parked', outputs: unreadableOutputs(output, record, { code, detail }, record.timestampMs) }
  }
  const decoded = await codec.decodeOutcome(record)
  if (decoded.kind === 'fault') return parked(decoded.code, decoded.detail)
  const fault = outcomeFault(decoded.value)
  return fault === null ? { kind: 'report', report: reportOf(record, decoded.value) } : parked('invalid_outcome', fault)
}

function reportOf(record: LogRecord, outcome: Outcome): Report {
  const status = outcome.status as Report['status']
  const effects = status === 'failed' ? (outcome.effects as Report['effects']) : ''
  return { record, outcome, kind: status === 'no_report' ? 'deadline' : 'report', status, effects }
}

async function outputsOf(
  { codec, partitions }: PolicyOptions,
  output: OutputContext,
  report: Report,
  settlement: Settlement,
): Promise<OutRecord[]> {
  const right = partitionOf(report.outcome.orderingKey, partitions)
  if (settlement.kind === 'unknown' && !settlement.isHere && right !== output.partition) {
    // A foreign producer chose the partition: the owner of the right one knows the delivery, or parks the report.
    const { topic, key, value, headers } = report.record
    return [{ topic, partition: right, key, value, headers: withInput(output, report.record, headers) }]
  }
  // Only while the delivery is open are its bytes sure to be there, also for whoever reads the record again.
  const isOpen = settlement.kind === 'settled' && settlement.row.result !== 'late' && settlement.row.code !== 'late'
  const bytes = isOpen ? (settlement.delivery?.event ?? null) : null
  let event: RawEvent | null = null
  if (bytes !== null) {
    const decoded = await codec.decodeEvent(bytes)
    if (decoded.kind === 'ok') event = decoded.value
  }
  return reportOutputs(output, report, settlement, event)
}
