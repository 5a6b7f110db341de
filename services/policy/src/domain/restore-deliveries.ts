import type { Decision } from '@weir/schemas'
import type { OpenDelivery, OutcomeKind, StoredOutcome } from './outcome.ts'
import { comparedVersion, type ComparedVersion } from './version.ts'

/** A delivery as its last emitted decision left it. */
export interface RestoredDelivery extends OpenDelivery {
  readonly tenant: string
  readonly orderingKey: string
  readonly eventKey: Buffer
  readonly overdueAtMs: number
  /** Coordinate of the record that ended it. */
  readonly ended: Decision['input'] | null
  /** Of one that waits for a further attempt. */
  readonly notBeforeMs: number | null
}

export interface RestoredVersion {
  readonly agent: string
  readonly orderingKey: string
  readonly decisionId: string
  readonly version: ComparedVersion
  readonly atMs: number
}

export interface DeliveryRestoration {
  readonly deliveries: readonly RestoredDelivery[]
  readonly outcomes: readonly StoredOutcome[]
  readonly versions: readonly RestoredVersion[]
}

/** The rows about deliveries, reports and versions that policy's own decisions, in the order of their log, tell of. */
export function deliveryRestorationOf(decisions: readonly Decision[]): DeliveryRestoration {
  const mine = decisions.filter(({ stage, tenant, agent }) => stage === 'policy' && tenant !== '' && agent !== null)
  const deliveries = new Map<string, RestoredDelivery>()
  for (const decision of mine) {
    const known = deliveries.get(decision.decisionId) ?? null
    const next = decision.report === null ? afterVerdict(decision, known) : afterReport(decision, known)
    if (next !== null) deliveries.set(decision.decisionId, next)
  }
  return {
    deliveries: [...deliveries.values()],
    outcomes: mine.flatMap(outcomeOf),
    versions: mine.flatMap(versionOf),
  }
}

function afterVerdict(decision: Decision, known: RestoredDelivery | null): RestoredDelivery | null {
  const { verdict, delivery, input, notBeforeMs, reasons } = decision
  if (delivery === null) return known
  switch (verdict) {
    case 'stale':
    case 'deny':
      return { ...(known ?? opened(decision, null)), state: verdict, ended: input }
    case 'defer':
      return known ?? { ...opened(decision, null), state: 'waiting', notBeforeMs }
    case 'parked':
      // The agent's topic refused it.
      return { ...opened(decision, known), state: 'parked', parkedCode: reasons[0]?.code ?? null, ended: input }
    default:
      return opened(decision, known)
  }
}

function afterReport(decision: Decision, known: RestoredDelivery | null): RestoredDelivery | null {
  const { report, delivery, input, notBeforeMs } = decision
  if (report === null || delivery === null) return known
  const base = known ?? opened(decision, null)
  switch (report.result) {
    case 'completed':
      return { ...base, state: 'completed', parkedCode: null, ended: input }
    case 'again':
      return { ...base, state: 'waiting', event: decision.waitingEvent ?? base.event, notBeforeMs, ended: null }
    case 'parked':
      return { ...base, state: 'parked', parkedCode: report.code, ended: input }
    default:
      return base
  }
}

function opened(decision: Decision, known: RestoredDelivery | null): RestoredDelivery {
  const { decisionId, agent, tenant, orderingKey, eventKey, attempt, delivery, original, input, atMs } = decision
  const { number: deliveries = 1, maxAttempts = 1, backoffMs = 0, deadlineMs = 1 } = delivery ?? {}
  return {
    decisionId,
    agent: agent ?? '',
    tenant,
    orderingKey,
    eventKey,
    state: 'in_progress',
    attempt,
    deliveries,
    parkedCode: null,
    maxAttempts,
    backoffMs,
    deadlineMs,
    event: decision.waitingEvent ?? known?.event ?? null,
    origin: original ?? input,
    overdueAtMs: atMs + deadlineMs,
    ended: null,
    notBeforeMs: null,
  }
}

function outcomeOf(decision: Decision): StoredOutcome[] {
  const { report, decisionId, attempt, input, effects, notBeforeMs, atMs } = decision
  if (report === null || report.result === 'contradictory') return []
  return [
    {
      decisionId,
      attempt,
      kind: report.kind as OutcomeKind,
      ...input,
      status: report.status as StoredOutcome['status'],
      effects: effects as StoredOutcome['effects'],
      result: report.result as StoredOutcome['result'],
      code: report.code,
      notBeforeMs,
      atMs,
    },
  ]
}

function versionOf({ report, verdict, agent, version, orderingKey, decisionId, atMs }: Decision): RestoredVersion[] {
  if (report !== null || verdict !== 'allow' || version === null || agent === null) return []
  const compared = comparedVersion(version)
  return compared === null ? [] : [{ agent, orderingKey, decisionId, version: compared, atMs }]
}
