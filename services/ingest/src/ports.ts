// What ingest needs of the world. Adapters implement it; the service sees nothing else.
import type { RawEvent, Receipt } from '@weir/schemas'

/** `weir.raw`. */
export interface EventLog {
  /** Id of the log that `weir.raw` is now; asked again after a failure and every few seconds. */
  readonly logId: () => string
  /** Resolves when the event is acknowledged by all in-sync replicas. Throws `publisher_full`, `record_too_large` or `broker_unavailable`; after the last the event may have been written. */
  readonly append: (event: RawEvent) => Promise<void>
}

/** `weir.receipts`. */
export interface ReceiptLog {
  /** Resolves when all are acknowledged. Throws like `EventLog.append`. */
  readonly append: (receipts: readonly Receipt[]) => Promise<void>
}

export interface ClaimRequest {
  readonly key: Buffer
  readonly deliveryId: string
  readonly digest: Buffer
  /** How long the key is remembered, milliseconds. */
  readonly keepMs: number
}

export type ClaimAnswer =
  /** Publish under this delivery id; it differs from the one asked for when an expired lease was taken over. */
  | { readonly kind: 'mine'; readonly deliveryId: string }
  | { readonly kind: 'accepted'; readonly deliveryId: string; readonly digest: Buffer }
  | { readonly kind: 'publishing'; readonly deliveryId: string; readonly leaseLeftMs: number }

export interface AcceptRequest {
  readonly key: Buffer
  readonly deliveryId: string
  readonly digest: Buffer
}

export type AcceptAnswer =
  | { readonly kind: 'mine' }
  | { readonly kind: 'accepted'; readonly deliveryId: string; readonly digest: Buffer }
  | { readonly kind: 'publishing'; readonly deliveryId: string }
  /** The row was deleted since: its time was over. */
  | { readonly kind: 'absent' }

/** The edge claims of API clients. Every method answers in the order of what was asked; within one call each key stands once. Throws `database_unavailable`. */
export interface EdgeClaims {
  readonly claim: (requests: readonly ClaimRequest[], logId: string) => Promise<readonly ClaimAnswer[]>
  readonly accept: (requests: readonly AcceptRequest[], logId: string) => Promise<readonly AcceptAnswer[]>
  /** Ends leases of failed publications; the delivery ids stay. */
  readonly release: (requests: readonly Pick<AcceptRequest, 'key' | 'deliveryId'>[]) => Promise<void>
  /** Deletes up to `limit` rows whose time is over; returns how many. */
  readonly expire: (limit: number) => Promise<number>
}

export interface Acceptance {
  readonly deliveryId: string
  readonly digest: Buffer
}

/** Copies of accepted edge claims. Only makes things quick: a failure is a miss, and nothing here ever throws. */
export interface EdgeCache {
  /** In the order of the keys; `null`: not known for this log. */
  readonly read: (keys: readonly Buffer[], logId: string) => Promise<readonly (Acceptance | null)[]>
  /** Best effort; does not wait. */
  readonly write: (
    key: Buffer,
    acceptance: Acceptance,
    options: { readonly logId: string; readonly ttlMs: number },
  ) => void
}

/** Fresh UUIDv7s. */
export type NewId = () => string

/** Ends the process when a test asks for it at this point; else does nothing. */
export type FaultPoint = (name: 'ingest.after-edge-claim' | 'ingest.after-publish' | 'ingest.before-answer') => void
