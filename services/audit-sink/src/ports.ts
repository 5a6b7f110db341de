import type { LogRecord, Ownership } from '@weir/core'
import type { ContractName, Contracts } from '@weir/schemas'
import type { Columns } from './domain/columns.ts'

type Decoded<Name extends ContractName> =
  | { readonly kind: 'ok'; readonly value: Contracts[Name] }
  | { readonly kind: 'fault'; readonly code: string; readonly detail: string }

/** Reads the contracts; throws only while the registry is away. */
export interface Decoder {
  decode<Name extends ContractName>(name: Name, bytes: Buffer | null): Decoded<Name> | Promise<Decoded<Name>>
}

/** One partition of one log, and how far it has landed. */
export interface LogProgress {
  readonly topic: string
  readonly logId: string
  readonly partition: number
  readonly nextOffset: number
}

/** What one landing brings of one partition: all offsets from `startOffset` up to `nextOffset`. */
export interface LandingPart {
  readonly log: LogProgress
  readonly nextOffset: number
  readonly rows: readonly LandingRow[]
}

export interface LandingRow {
  readonly record: LogRecord
  readonly columns: Columns
}

/** The append-only store. Everything of one `land` is written in one transaction, or nothing. */
export interface AuditStore {
  takeOver(): Promise<Ownership>
  positions(): Promise<readonly LogProgress[]>
  /** Begins a log at its first offset. */
  begin(log: LogProgress): Promise<void>
  /** Returns false, with nothing written, when another writer owns the store. Throws `coverage_gap` when a part does not join. */
  land(ownership: Ownership, parts: readonly LandingPart[]): Promise<boolean>
  /** Makes partitions ahead; returns for how many days from today on there is one. */
  ensurePartitions(daysAhead: number): Promise<number>
}
