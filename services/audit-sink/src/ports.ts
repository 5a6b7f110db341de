import type { LogRecord, Ownership } from '@weir/core'
import type { ContractName, Contracts } from '@weir/schemas'
import type { Columns } from './domain/columns.ts'
import type { Question } from './domain/question.ts'
import type { StoryRow } from './domain/story.ts'

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

/** Tenants an analyst may see; `null`: all. */
export type TenantScope = readonly string[] | null

export interface MessageFilter {
  readonly questions: readonly Question[]
  readonly agent: string | null
  readonly kind: string | null
  readonly fromMs: number | null
  readonly toMs: number | null
  /** Only leaves above this one. */
  readonly after: number
  readonly limit: number
}

export interface RawMessage extends StoryRow {
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: Buffer
}

export interface CoverageRow {
  readonly topic: string
  readonly logId: string
  readonly partition: number
  readonly firstOffset: number
  readonly nextOffset: number
  readonly messages: number
}

/** Reads the store for analysts. Every method but `coverage` shows only what is in the scope. */
export interface AuditQueries {
  /** Latest events (keys) that answer the question, newest first, `limit` at most; `more` when there are others. */
  eventKeys(
    question: Question,
    scope: TenantScope,
    limit: number,
  ): Promise<{ readonly keys: readonly Buffer[]; readonly more: boolean }>
  /** Latest messages that answer the question and belong to no event, such as an action no event began. */
  loose(question: Question, scope: TenantScope): Promise<readonly StoryRow[]>
  /**
   * Messages of these events in log order. Of repeats that say the same (arrivals, answers, duplicates) only the first is there, with
   * the number of all in `copies`. `complete` is false when an event has more messages than are read for a story.
   */
  story(
    keys: readonly Buffer[],
    scope: TenantScope,
  ): Promise<{ readonly rows: readonly StoryRow[]; readonly complete: boolean }>
  /** Events with one of these event key texts or decision ids. */
  named(ids: readonly string[], scope: TenantScope, limit: number): Promise<readonly Buffer[]>
  /** Events whose cause or root event is one of these, latest first. */
  consequences(ids: readonly string[], scope: TenantScope, limit: number): Promise<readonly Buffer[]>
  messages(filter: MessageFilter, scope: TenantScope): Promise<readonly StoryRow[]>
  message(leafIndex: number, scope: TenantScope): Promise<RawMessage | null>
  coverage(): Promise<readonly CoverageRow[]>
}
