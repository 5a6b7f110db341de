import type { Coordinate, LogRecord } from '@weir/core'
import type { Outcome } from '@weir/schemas'

export type OutcomeKind = 'report' | 'deadline'
export type OutcomeStatus = 'completed' | 'failed' | 'no_report'
export type Effects = '' | 'none' | 'unknown' | 'done'
/**
 * What follows from a report: `completed` and `parked` end the delivery, `again` lets it wait for its next attempt, `late` changes
 * nothing because it had ended or moved on, `moot` is a deadline that passed after the report.
 */
export type OutcomeResult = 'completed' | 'again' | 'parked' | 'late' | 'moot'

/** A record of weir.outcomes that can be settled. */
export interface Report {
  readonly record: LogRecord
  readonly outcome: Outcome
  readonly kind: OutcomeKind
  readonly status: OutcomeStatus
  readonly effects: Effects
}

/** A delivery to an agent that reports, as stored. */
export interface OpenDelivery {
  readonly decisionId: string
  readonly agent: string
  readonly state: 'in_progress' | 'waiting' | 'completed' | 'parked' | 'deny' | 'stale'
  readonly attempt: number
  readonly deliveries: number
  readonly parkedCode: string | null
  readonly maxAttempts: number
  readonly backoffMs: number
  readonly deadlineMs: number
  /** The RawEvent bytes; null once its end is known committed. */
  readonly event: Buffer | null
  /** Coordinate of its event. */
  readonly origin: Coordinate
}

/** What was stored for an attempt: its first report, or the passing of its deadline. */
export interface StoredOutcome {
  readonly decisionId: string
  readonly attempt: number
  readonly kind: OutcomeKind
  readonly logId: string
  readonly partition: number
  readonly offset: number
  readonly status: OutcomeStatus
  readonly effects: Effects
  readonly result: OutcomeResult
  readonly code: string
  readonly notBeforeMs: number | null
  readonly atMs: number
}

export type Settlement =
  /** This record decided; `delivery` as it was read, for its terms and bytes. */
  | { readonly kind: 'settled'; readonly row: StoredOutcome; readonly delivery: OpenDelivery | null }
  /** The attempt was reported on before: in the same words, or in others. The first report stands. */
  | { readonly kind: 'repeated'; readonly row: StoredOutcome }
  | { readonly kind: 'contradicted'; readonly row: StoredOutcome; readonly delivery: OpenDelivery | null }
  /** There is no such delivery to this agent; `isHere`: there is one of this decision in this partition. */
  | { readonly kind: 'unknown'; readonly detail: string; readonly isHere: boolean }

export interface SettlementContext {
  readonly logId: string
  readonly partition: number
  readonly atMs: number
}

/** Longest wait before a further attempt, milliseconds. */
const maxBackoffMs = 3_600_000

/** Wait before the next delivery after the `deliveries`-th failed, milliseconds. */
export function backoffAfter(deliveries: number, backoffMs: number): number {
  return Math.min(backoffMs * 2 ** Math.min(deliveries - 1, 40), Math.max(maxBackoffMs, backoffMs))
}

/**
 * Settles reports in their order. Pure: deliveries and outcomes as stored, one clock reading. A record that was settled before gets
 * its stored result; the first report of an attempt stands, whatever comes later.
 */
export function settleReports(
  reports: readonly Report[],
  stored: { readonly deliveries: readonly OpenDelivery[]; readonly outcomes: readonly StoredOutcome[] },
  context: SettlementContext,
): Settlement[] {
  const deliveries = new Map(stored.deliveries.map(delivery => [delivery.decisionId, delivery]))
  const outcomes = new Map(stored.outcomes.map(row => [outcomeKey(row), row]))
  return reports.map(report => {
    const { decisionId, attempt, agent } = report.outcome
    const delivery = deliveries.get(decisionId) ?? null
    const known = outcomes.get(outcomeKey({ decisionId, attempt, kind: report.kind }))
    if (known !== undefined) return settledBefore(report, known, delivery, context)
    if (delivery === null || delivery.agent !== agent || attempt > delivery.attempt) {
      const detail = `there is no attempt ${attempt} of delivery ${decisionId} to agent ${agent}`
      return { kind: 'unknown', detail, isHere: delivery !== null }
    }
    const row = rowOf(report, delivery, context)
    outcomes.set(outcomeKey(row), row)
    deliveries.set(decisionId, after(delivery, row))
    return { kind: 'settled', row, delivery }
  })
}

export function outcomeKey(of: {
  readonly decisionId: string
  readonly attempt: number
  readonly kind: OutcomeKind
}): string {
  return `${of.decisionId}:${of.attempt}:${of.kind}`
}

function settledBefore(
  report: Report,
  row: StoredOutcome,
  delivery: OpenDelivery | null,
  { logId, partition }: SettlementContext,
): Settlement {
  const isMine = row.logId === logId && row.partition === partition && row.offset === report.record.offset
  if (isMine) return { kind: 'settled', row, delivery }
  const isSame = row.status === report.status && row.effects === report.effects
  return isSame ? { kind: 'repeated', row } : { kind: 'contradicted', row, delivery }
}

function rowOf(report: Report, delivery: OpenDelivery, { logId, partition, atMs }: SettlementContext): StoredOutcome {
  const { decisionId, attempt } = report.outcome
  const { kind, status, effects } = report
  return {
    decisionId,
    attempt,
    kind,
    logId,
    partition,
    offset: report.record.offset,
    status,
    effects,
    ...resultOf(report, delivery, atMs),
    atMs,
  }
}

function resultOf(
  { outcome, kind, status, effects }: Report,
  delivery: OpenDelivery,
  atMs: number,
): Pick<StoredOutcome, 'result' | 'code' | 'notBeforeMs'> {
  const isOpen = delivery.state === 'in_progress' && delivery.attempt === outcome.attempt
  if (kind === 'deadline') return isOpen ? parked('no_report') : { result: 'moot', code: '', notBeforeMs: null }
  if (!isOpen) {
    // The one report that helps although it is late: then nobody needs to look at the parked copy.
    const isAwaited = delivery.state === 'parked' && delivery.parkedCode === 'no_report'
    if (isAwaited && delivery.attempt === outcome.attempt && status === 'completed') {
      return { result: 'completed', code: 'late', notBeforeMs: null }
    }
    return { result: 'late', code: delivery.state, notBeforeMs: null }
  }
  if (status === 'completed') return { result: 'completed', code: '', notBeforeMs: null }
  if (effects !== 'none') return parked(`effects_${effects}`)
  if (delivery.deliveries >= delivery.maxAttempts) return parked('attempts_exhausted')
  return { result: 'again', code: '', notBeforeMs: atMs + backoffAfter(delivery.deliveries, delivery.backoffMs) }
}

function parked(code: string): Pick<StoredOutcome, 'result' | 'code' | 'notBeforeMs'> {
  return { result: 'parked', code, notBeforeMs: null }
}

function after(delivery: OpenDelivery, { result, code }: StoredOutcome): OpenDelivery {
  switch (result) {
    case 'completed':
      return { ...delivery, state: 'completed', parkedCode: null }
    case 'again':
      return { ...delivery, state: 'waiting', parkedCode: null }
    case 'parked':
      return { ...delivery, state: 'parked', parkedCode: code }
    case 'late':
    case 'moot':
      return delivery
  }
}
