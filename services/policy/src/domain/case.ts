import type { Coordinate, LogRecord } from '@weir/core'
import type { DecisionCharge, DecisionReason, RawEvent } from '@weir/schemas'
import type { DeliveryTerms } from './terms.ts'
import type { ComparedVersion } from './version.ts'

export type Reason = DecisionReason
export type Charge = DecisionCharge

/** What policy may answer at this depth. */
export type Verdict = 'allow' | 'defer' | 'deny' | 'stale' | 'unrouted' | 'parked'

/** An input record that can be judged: an event, or the release of one delivery of an event. */
export interface Item {
  readonly record: LogRecord
  readonly event: RawEvent
  readonly eventBytes: Buffer
  readonly admissionId: string
  /** Coordinate of the weir.events record it began with. */
  readonly origin: Coordinate
  /** Of a release: which delivery and attempt. */
  readonly release: Released | null
}

interface Released {
  readonly decisionId: string
  readonly attempt: number
  readonly agent: string
  readonly rateReserved: boolean
  /** It was delivered before and failed without effects. */
  readonly isAgain: boolean
}

/** One delivery to be judged: an event for one agent, at one attempt. */
export interface Case {
  readonly item: Item
  /** Empty when no route takes the event. */
  readonly agent: string
  /** All agents of the event, as stored with the attempt. */
  readonly agents: readonly string[]
  readonly decisionId: string
  readonly attempt: number
  /** A former deferral holds a rate slot for it. */
  readonly rateReserved: boolean
  /** A further attempt of a delivery that failed without effects: its ceilings are charged already. */
  readonly isAgain: boolean
  /** Version of its object, where it has one that can be compared. */
  readonly version: ComparedVersion | null
  /** Null when its agent does not report. */
  readonly terms: DeliveryTerms | null
}

/** Deliveries of one agent and ordering key keep their order. */
export function groupOf(agent: string, orderingKey: string): string {
  return `${agent}\u0000${orderingKey}`
}

export function reason(gate: string, code: string, detail: string, numbers: Partial<Reason> = {}): Reason {
  return { rule: null, limit: null, used: null, windowStartMs: null, ...numbers, gate, code, detail }
}

export const slotReserved = 'slot_reserved'

/** Whether a deferral with these reasons holds a rate slot, so that its release is not charged again. */
export function holdsRateSlot(reasons: readonly Reason[]): boolean {
  return reasons.some(({ code }) => code === slotReserved)
}
