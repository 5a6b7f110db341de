import type { BudgetConfiguration, OutRecord } from '@weir/core'
import type { RawEvent, Release } from '@weir/schemas'
import { rateScopes } from './budgets.ts'
import { groupOf } from './case.ts'

/** A delivery that waits, without its bytes. */
export interface Candidate {
  readonly decisionId: string
  readonly agent: string
  readonly orderingKey: string
  readonly tenant: string
  readonly nextAttempt: number
  readonly releasedAttempt: number
  readonly releasedAtMs: number | null
  /** Null while it only waits behind another. */
  readonly notBeforeMs: number | null
  /** Its end is claimed and not known committed yet. */
  readonly hasEnded: boolean
  readonly eventBytes: number
}

export interface WaitingDelivery {
  readonly decisionId: string
  readonly agent: string
  readonly attempt: number
  readonly logId: string
  readonly partition: number
  readonly offset: number
  readonly event: Buffer
  readonly rateReserved: boolean
  /** `again`: its agent reported a failure without effects. */
  readonly cause: 'due' | 'again'
}

/** Deliveries of one agent and ordering key that may be released together at most. */
export const maxRun = 64

/**
 * How many deliveries of one group are released together: what the tenant's rates let pass in a fifth of a second. More would be
 * told to wait again, one after the other.
 */
export function runLimit(budgets: readonly BudgetConfiguration[], tenant: string): number {
  const rates = rateScopes(
    budgets.map(budget => ({ ...budget, scope: 'tenant' as const })),
    { tenant, run: null },
  )
  const perFifth = rates.map(({ limit, periodSeconds }) => Math.floor(limit / periodSeconds / 5))
  return Math.max(1, Math.min(maxRun, ...perFifth))
}

/**
 * Of each group, the leading deliveries that are due: the first that is not due, is under way, or has ended and is not settled stops
 * those behind it. `candidates` are in order within each group.
 */
export function dueDeliveries(
  candidates: readonly Candidate[],
  options: { readonly nowMs: number; readonly claimTimeoutMs: number; runLimitOf(tenant: string): number },
): Candidate[] {
  const open = new Map<string, number>()
  const due: Candidate[] = []
  for (const candidate of candidates) {
    const group = groupOf(candidate.agent, candidate.orderingKey)
    const left = open.get(group) ?? options.runLimitOf(candidate.tenant)
    const isDue = left > 0 && isReleasable(candidate, options.nowMs, options.claimTimeoutMs)
    open.set(group, isDue ? left - 1 : 0)
    if (isDue) due.push(candidate)
  }
  return due
}

/** The earliest time at which one of these may be due; null when none waits for a time. */
export function nextDueMs(candidates: readonly Candidate[], claimTimeoutMs: number): number | null {
  const times = candidates.flatMap(({ hasEnded, notBeforeMs, nextAttempt, releasedAttempt, releasedAtMs }) => {
    if (hasEnded) return []
    if (releasedAttempt === nextAttempt) return [(releasedAtMs ?? 0) + claimTimeoutMs]
    return notBeforeMs === null ? [] : [notBeforeMs]
  })
  return times.length === 0 ? null : times.reduce((least, time) => Math.min(least, time))
}

function isReleasable(candidate: Candidate, nowMs: number, claimTimeoutMs: number): boolean {
  if (candidate.hasEnded) return false
  if (candidate.notBeforeMs !== null && candidate.notBeforeMs > nowMs) return false
  const isUnderWay = candidate.releasedAttempt === candidate.nextAttempt
  return !isUnderWay || nowMs - (candidate.releasedAtMs ?? 0) > claimTimeoutMs
}

/** The record that lets a delivery re-enter. */
export function releaseOf(waiting: WaitingDelivery, event: RawEvent, releasedAtMs: number): Release {
  return {
    decisionId: waiting.decisionId,
    attempt: waiting.attempt,
    agent: waiting.agent,
    tenant: event.tenant,
    source: event.source,
    eventKey: event.eventKey,
    eventKeyText: event.eventKeyText,
    orderingKey: event.orderingKey,
    admissionId: event.deliveryId,
    cause: waiting.cause,
    event: waiting.event,
    input: { logId: waiting.logId, partition: waiting.partition, offset: waiting.offset },
    effects: waiting.cause === 'again' ? 'none' : '',
    rateReserved: waiting.rateReserved,
    releasedAtMs,
    run: event.run,
    traceparent: event.traceparent,
  }
}

export function releaseRecord(topic: string, partition: number, release: Release, value: Buffer): OutRecord {
  const headers: OutRecord['headers'] =
    release.traceparent === null ? [] : [['traceparent', Buffer.from(release.traceparent, 'utf8')]]
  return { topic, partition, key: Buffer.from(release.orderingKey, 'utf8'), value, headers }
}
