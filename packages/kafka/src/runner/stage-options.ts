import type { Broker, Clock, Log, OwnerStore, StageHandler } from '@weir/core'

/** Why an operator should look: each is logged as an error and counted. */
export type StageAlarm = 'group_offset_lost' | 'postgres_behind' | 'records_expired' | 'session_lost' | 'halted'

/** What the runner tells metrics. All optional: a stage may run unobserved. */
export interface StageObserver {
  batch?(topic: string, partition: number, records: number, seconds: number): void
  /** Records between what is committed and the end of the input. */
  lag?(topic: string, partition: number, records: number): void
  takeOver?(partition: number, seconds: number): void
  alarm?(kind: StageAlarm, partition: number): void
  /** A transaction that did not commit: fenced, unknown or refused. */
  interrupted?(partition: number, kind: string): void
}

export interface StageOptions {
  /** Name of the stage in owner rows and logs: `dedup` or `policy`. */
  readonly stage: string
  /** Consumer group: membership and committed offsets. */
  readonly group: string
  /** Input topics, all of one partition count. */
  readonly inputs: readonly string[]
  /** Topics of the stage's own outputs that tell what was emitted: searched when offsets or rows are missing. */
  readonly ownOutputs: readonly string[]
  /** The transactional id is this and the partition number. */
  readonly transactionalIdPrefix: string
  readonly broker: Broker
  readonly owners: OwnerStore
  readonly handler: StageHandler
  readonly log: Log
  readonly clock: Clock
  readonly observer?: StageObserver
  /** Called at named points; kill tests end the process there. */
  readonly faultPoint?: (name: string) => void
  /** Waits; a simulated clock replaces it. Resolves early when `signal` aborts. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>
  /** Records in one claim and transaction at most. Default 1,000. */
  readonly maxBatchRecords?: number
  /** Bytes of one fetch. Default 512 KiB. */
  readonly maxFetchBytes?: number
  /** How often `tick` is called at most, milliseconds. Default 100. */
  readonly tickMs?: number
  /** Idle time after which positions are stored without a claim, milliseconds. Default 1,000. */
  readonly idleAdvanceMs?: number
  /** Time without progress, while there is something to do, after which the stage is no longer live, milliseconds. Default 120,000. */
  readonly noProgressMs?: number
  /** Group session time-out, milliseconds. Default that of the broker port. */
  readonly sessionTimeoutMs?: number
}

export const stageDefaults = {
  maxBatchRecords: 1_000,
  maxFetchBytes: 512 * 1024,
  tickMs: 100,
  idleAdvanceMs: 1_000,
  noProgressMs: 120_000,
} as const

/** Waits for `ms` or until the signal aborts, whichever is first. */
export function sleepUnlessAborted(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal.aborted) {
      resolve()
      return
    }
    const done = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done, { once: true })
  })
}
