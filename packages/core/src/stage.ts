// The one mechanism: take over, read, claim, emit. Ports between the runner (packages/kafka), the owner rows
// (packages/postgres) and a stage (services/dedup, services/policy).
import { WeirError } from './errors.ts'
import type { Coordinate, Header, LogRecord, OutRecord } from './log.ts'

/** Name of a header on every output of a stage: `<logId>:<partition>:<offset>` of the input it came from. */
export const inputHeader = 'weir-input'

/** Headers of an output with the coordinate of the input it came from; one that was there before is replaced. */
export function withInputHeader({ logId, partition, offset }: Coordinate, headers: readonly Header[]): Header[] {
  const value = Buffer.from(`${logId}:${partition}:${offset}`, 'utf8')
  return [...headers.filter(([name]) => name !== inputHeader), [inputHeader, value]]
}

/** Where an input log stands for an owner: everything below `emittedBelow` has had its verdict and was emitted. */
export interface LogPosition {
  readonly topic: string
  readonly logId: string
  readonly emittedBelow: number
  /** Outputs for inputs at or above `emittedBelow` were appended at or after this log-append time: own outputs are searched from there. */
  readonly claimedAtMs: number
}

/** An owner's right to write: every write of a stage carries it, and writes nothing when it is out of date. */
export interface Ownership {
  readonly stage: string
  readonly partition: number
  readonly epoch: bigint
}

/** The epoch of this owner is out of date: it has written nothing, and writes nothing more. */
export function fenced({ stage, partition }: Pick<Ownership, 'stage' | 'partition'>): WeirError {
  return new WeirError('fenced', `another instance owns ${stage} ${partition} now`)
}

/** Owner rows. One per (stage, partition number). */
export interface OwnerStore {
  /** Raises the epoch and returns it with the stored positions of all input logs. */
  takeOver(
    stage: string,
    partition: number,
  ): Promise<{ readonly ownership: Ownership; readonly positions: readonly LogPosition[] }>
  /** Moves positions forward (never back). Returns false when the epoch is no longer mine. */
  advance(ownership: Ownership, positions: readonly LogPosition[]): Promise<boolean>
}

/** A batch of one input partition, in offset order. */
export interface StageBatch {
  readonly topic: string
  readonly logId: string
  readonly partition: number
  readonly records: readonly LogRecord[]
}

/** What the stage may know while it claims: its right, and the positions to store with the claim. */
export interface ClaimContext {
  readonly ownership: Ownership
  /** Positions known committed; the claim statement stores them. */
  readonly committed: readonly LogPosition[]
}

export type StageVerdict =
  /** Emit these with the batch's offset in one transaction. */
  | { readonly kind: 'emit'; readonly records: readonly OutRecord[] }
  /** The epoch is no longer mine: nothing was written. */
  | { readonly kind: 'fenced' }

export interface StageHandler {
  /** Decode, claim, decide. Throws only for what a later try can cure (a store or the registry away) or a bug; data never throws. */
  claim(batch: StageBatch, context: ClaimContext): Promise<StageVerdict>
  /**
   * The broker refused for good to append this batch's output to `topic`: judge the batch again, parking what would go there.
   * Claims already written stay; the answer must not contain a record for `topic`.
   */
  reroute(batch: StageBatch, context: ClaimContext, topic: string, code: string): Promise<StageVerdict>
  /**
   * Own outputs (`weir.decisions`, `weir.dedup-state`) found above the stored position: make the rows they tell of exist.
   * Returns how many rows were missing; more than none means Postgres lost commits.
   */
  rebuild(outputs: readonly LogRecord[], ownership: Ownership): Promise<{ readonly restored: number }>
  /** After take-over and before the first batch; loads what the serial owner keeps in memory. */
  begin(ownership: Ownership): Promise<void>
  /** The transaction with this batch's outputs is known committed. Must not throw for data. */
  committed?(batch: StageBatch, context: ClaimContext): Promise<void>
  /**
   * Called by the serial loop between batches, at most every 100 ms, with the positions known committed: releases what is
   * due. Runs inside the loop, so it must be bounded; throws only for what a later try can cure.
   */
  tick?(ownership: Ownership, committed: readonly LogPosition[]): Promise<void>
  /** The partition number is no longer mine: drop what is kept in memory for it. */
  end(partition: number): void
}
