import type { ClaimContext, Coordinate, LogRecord, Ownership } from '@weir/core'
import type { Decision, KeyState, RawEvent } from '@weir/schemas'

/** A claim to be made: one per distinct event key of a batch, in offset order. */
export interface ClaimRequest {
  readonly eventKey: Buffer
  readonly eventKeyText: string
  readonly tenant: string
  readonly source: string
  readonly deliveryId: string
  readonly offset: number
  readonly payloadDigest: Buffer
  readonly appendedAtMs: number
  readonly businessKey: BusinessClaim | null
}

export interface BusinessClaim {
  /** SHA-256 of the length-prefixed (tenant, space, value). */
  readonly key: Buffer
  readonly space: string
  readonly value: string
}

export interface Holder {
  readonly deliveryId: string
  readonly coordinate: Coordinate
}

/** Who holds what was claimed. */
export interface ClaimAnswer {
  readonly holder: Holder & { readonly payloadDigest: Buffer }
  /** The holder's record is known to have been emitted from its log. */
  readonly knownEmitted: boolean
  /** Holder of the business key, when one was asked for and is held. */
  readonly businessHolder: (Holder & { readonly eventKey: Buffer }) | null
}

/** The claims in Postgres: unique constraints decide. */
export interface ClaimLedger {
  /** One answer per request, in order; null when the epoch is no longer mine and nothing was written. Absence is never an answer. */
  claim(
    input: { readonly partition: number; readonly logId: string },
    context: ClaimContext,
    requests: readonly ClaimRequest[],
  ): Promise<readonly ClaimAnswer[] | null>
  /** Makes these claims exist; returns how many were missing, or null when the epoch is no longer mine. */
  restore(ownership: Ownership, claims: readonly RestoredClaim[]): Promise<number | null>
}

export interface RestoredClaim extends ClaimRequest {
  readonly logId: string
}

export type Decoded<T> =
  | { readonly kind: 'ok'; readonly value: T }
  | { readonly kind: 'fault'; readonly code: string; readonly detail: string }

export interface DedupCodec {
  decodeRaw(record: LogRecord): Decoded<RawEvent> | Promise<Decoded<RawEvent>>
  decodeDecision(record: LogRecord): Decoded<Decision> | Promise<Decoded<Decision>>
  encodeDecision(decision: Decision): Buffer
  encodeState(state: KeyState): Buffer
}

export interface WindowedEvent {
  readonly tenant: string
  readonly source: string
  readonly type: string
}

/** What the configuration says about the sources; sources it does not know follow the default. */
export interface SourceRules {
  onPayloadChange(tenant: string, source: string): 'flag' | 'park'
  /** How long a repeat of this event is recognised, milliseconds of log-append time. */
  windowMs(event: WindowedEvent): number
  /** How long its claims are kept at least: the window, or that of another source that shares its business key's space. */
  keptMs(event: WindowedEvent & { readonly businessKey: { readonly space: string } | null }): number
}
