import type { ClaimContext, LogPosition, LogRecord, OutRecord, Ownership, StageBatch } from '@weir/core'
import type { Decision, DecisionDeliveryTerms, Outcome, RawEvent, Release } from '@weir/schemas'
import type { RateScope } from './domain/budgets.ts'
import type { Charge, Reason, Verdict } from './domain/case.ts'
import type { RateAnswer } from './domain/gates/gate.ts'
import type { Proposal } from './domain/judge.ts'
import type { Candidate, WaitingDelivery } from './domain/release.ts'
import type { OpenDelivery, OutcomeKind, StoredOutcome } from './domain/outcome.ts'
import type { DeliveryRestoration } from './domain/restore-deliveries.ts'
import type { Restoration } from './domain/restore.ts'

/** A verdict as stored: of one input record, for one agent, at one attempt. */
export interface StoredVerdict {
  readonly decisionId: string
  readonly attempt: number
  /** Empty when no route takes the event. */
  readonly agent: string
  readonly agents: readonly string[]
  readonly logId: string
  readonly partition: number
  readonly offset: number
  readonly verdict: Verdict
  readonly reasons: readonly Reason[]
  readonly charges: readonly Charge[]
  readonly notBeforeMs: number | null
  readonly atMs: number
  readonly configVersion: string
  /** Of a delivery to an agent that reports, once it was allowed: how it stands. */
  readonly delivery: DecisionDeliveryTerms | null
  /** The agent's topic refused the delivery afterwards: it is parked. */
  readonly override: { readonly code: string; readonly detail: string } | null
}

/** A delivery that waits, as far as order is concerned. */
export interface WaitingPlace {
  readonly decisionId: string
  readonly agent: string
  readonly orderingKey: string
  /** Coordinate of its event. */
  readonly logId: string
  readonly offset: number
}

export interface AttemptId {
  readonly decisionId: string
  readonly attempt: number
}

/** Asks which deliveries of one agent and ordering key wait before an offset. */
export interface GroupQuestion {
  readonly agent: string
  readonly orderingKey: string
  readonly logId: string
  readonly belowOffset: number
  /** How many to name at most, lowest offset first. */
  readonly limit: number
}

export interface Look {
  /** Verdicts that records of the batch, or the attempts asked for, already have; perhaps from another record. */
  readonly stored: readonly StoredVerdict[]
  readonly waiting: readonly WaitingPlace[]
  /** The one clock: that of Postgres, milliseconds since 1970. */
  readonly nowMs: number
}

export interface ClaimRequest {
  readonly proposal: Proposal
  /** Equal numbers, from 1, for one agent and ordering key. */
  readonly group: number
  /** It may have to wait or to go out again, so the ledger keeps its bytes. */
  readonly keepsEvent: boolean
}

/** Verdicts, charges and waiting deliveries. Whoever has an old epoch writes nothing. */
export interface PolicyLedger {
  look(batch: StageBatch, attempts: readonly AttemptId[], questions: readonly GroupQuestion[]): Promise<Look>
  /** The stored verdict of each request, in order; null when the epoch is no longer mine and nothing was written. */
  claim(
    batch: StageBatch,
    context: ClaimContext,
    requests: readonly ClaimRequest[],
    at: { readonly atMs: number; readonly configVersion: string },
  ): Promise<readonly StoredVerdict[] | null>
  /** Parks allowed deliveries and voids their charges. False when the epoch is no longer mine. */
  park(
    ownership: Ownership,
    deliveries: readonly AttemptId[],
    why: { readonly code: string; readonly detail: string; readonly atMs: number },
  ): Promise<boolean>
  /** Deletes waiting rows whose end is known committed: of these decisions, or (`null`) of the whole number. False as above. */
  settle(
    ownership: Ownership,
    committed: readonly LogPosition[],
    decisionIds: readonly string[] | null,
  ): Promise<boolean>
  /** The first `perGroup` deliveries that wait, of each agent and ordering key, whose event is known committed. */
  candidates(ownership: Ownership, committed: readonly LogPosition[], perGroup: number): Promise<WaitingLook>
  fetchWaiting(ownership: Ownership, decisionIds: readonly string[]): Promise<readonly WaitingDelivery[]>
  /** False when the epoch is no longer mine. */
  markReleased(ownership: Ownership, released: readonly AttemptId[]): Promise<boolean>
  /** Makes these rows exist; how many were missing, or null when the epoch is no longer mine. */
  restore(ownership: Ownership, rows: Restoration): Promise<number | null>
}

export interface ReportKey extends AttemptId {
  readonly kind: OutcomeKind
}

export interface ReportLook {
  readonly deliveries: readonly OpenDelivery[]
  /** Outcomes stored for these keys, perhaps from other records. */
  readonly outcomes: readonly StoredOutcome[]
  readonly nowMs: number
}

/** A delivery whose agent has not reported in time. */
export interface OverdueDelivery extends AttemptId {
  readonly agent: string
  readonly event: Buffer
}

/** Deliveries to agents that report. Whoever has an old epoch writes nothing. */
export interface DeliveryLedger {
  lookReports(batch: StageBatch, keys: readonly ReportKey[]): Promise<ReportLook>
  /** Stores what follows from reports and moves their deliveries. False when the epoch is no longer mine. */
  claimReports(batch: StageBatch, context: ClaimContext, rows: readonly StoredOutcome[], atMs: number): Promise<boolean>
  /**
   * The deliveries that are overdue, longest first, and not produced as such within `againAfterMs`; only of inputs known committed.
   * `nowMs`: when that was found, where there are some.
   */
  overdue(
    ownership: Ownership,
    committed: readonly LogPosition[],
    ask: { readonly limit: number; readonly againAfterMs: number },
  ): Promise<{ readonly deliveries: readonly OverdueDelivery[]; readonly nowMs: number }>
  /** False when the epoch is no longer mine. */
  markOverdue(ownership: Ownership, overdue: readonly AttemptId[]): Promise<boolean>
  /** Makes these rows exist; how many were missing, or null when the epoch is no longer mine. */
  restoreDeliveries(ownership: Ownership, rows: DeliveryRestoration): Promise<number | null>
  /** Removes rows judged before a time that no re-read can ask for; how many, or null when the epoch is no longer mine. */
  expire(ownership: Ownership, ask: { readonly beforeMs: number; readonly limit: number }): Promise<number | null>
}

/** A delivery as its agent may ask for it. */
export interface FoundDelivery extends OpenDelivery {
  readonly tenant: string
  readonly orderingKey: string
  readonly eventKey: Buffer
  readonly partition: number
  /** When its agent must have reported, milliseconds since 1970. */
  readonly overdueAtMs: number
}

/** Finds deliveries of any partition number; reads only. */
export interface DeliveryDirectory {
  find(decisionIds: readonly string[]): Promise<readonly FoundDelivery[]>
}

export interface WaitingLook {
  readonly candidates: readonly Candidate[]
  /** Deliveries that wait in this partition number, and since when the oldest one is due or waits. */
  readonly depth: number
  readonly oldestDueMs: number | null
  readonly nowMs: number
}

export interface RateRequest {
  /** Decision id and attempt: a resend gets the first answer. */
  readonly id: string
  readonly tenant: string
  /** Equal text for one agent and ordering key: when one must wait, those after it are not asked. */
  readonly group: string
  readonly scopes: readonly RateScope[]
}

/** Answers all rates of a batch at once: for each delivery all its scopes take it, or it gets one reserved slot. Never throws. */
export interface RateLimiter {
  ask(requests: readonly RateRequest[], nowMs: number): Promise<readonly RateAnswer[]>
  /** The part of all partition numbers this instance owns, 0 to 1: its share of each rate while the limiter is away. */
  setShare(share: number): void
}

/** Appends releases and outcomes; resolves when all are acknowledged. */
export interface ReleasePublisher {
  publish(records: readonly OutRecord[]): Promise<unknown>
}

export type Decoded<T> =
  | { readonly kind: 'ok'; readonly value: T }
  | { readonly kind: 'fault'; readonly code: string; readonly detail: string }

type Eventually<T> = T | Promise<T>

export interface PolicyCodec {
  decodeEvent(bytes: Buffer | null): Eventually<Decoded<RawEvent>>
  decodeRelease(record: LogRecord): Eventually<Decoded<Release>>
  decodeDecision(record: LogRecord): Eventually<Decoded<Decision>>
  decodeOutcome(record: LogRecord): Eventually<Decoded<Outcome>>
  encodeDecision(decision: Decision): Buffer
  encodeRelease(release: Release): Buffer
  encodeOutcome(outcome: Outcome): Buffer
}
