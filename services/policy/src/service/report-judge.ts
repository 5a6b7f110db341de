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
  | { readonly kind: 'done'; readonly record: LogRecord; readonly outputs: readonly OutRecord[] }

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
  const keys = reports.map(({ outcome, kind }) => ({
    decisionId: outcome.decisionId,
    attempt: outcome.attempt,
    kind,
  }))
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
  const bySettled = new Map(reports.map((report, i) => [report.record.offset, settlements[i]]))
  const records: OutRecord[] = []
  for (const item of sorted) {
    if (item.kind === 'done') records.push(...item.outputs)
    else records.push(...(await outputsOf(options, output, item.report, bySettled.get(item.report.record.offset))))
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

async function sort(options: PolicyOptions, record: LogRecord, output: OutputContext): Promise<Sorted> {
  const { codec } = options
  const decoded = await codec.decodeOutcome(record)
  const fault =
    decoded.kind === 'fault' ? { code: decoded.code, detail: decoded.detail } : invalid(outcomeFault(decoded.value))
  if (decoded.kind === 'fault' || fault !== null) {
    const why = fault ?? { code: 'invalid_outcome', detail: '' }
    return { kind: 'done', record, outputs: unreadableOutputs(output, record, why, record.timestampMs) }
  }
  const outcome = decoded.value
  return { kind: 'report', report: reportOf(record, outcome) }
}

function invalid(detail: string | null): { readonly code: string; readonly detail: string } | null {
  return detail === null ? null : { code: 'invalid_outcome', detail }
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
  settlement: Settlement | undefined,
): Promise<OutRecord[]> {
  if (settlement === undefined) return []
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
