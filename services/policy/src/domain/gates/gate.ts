import type { BudgetConfiguration } from '@weir/core'
import type { CeilingAsk, RateScope } from '../budgets.ts'
import type { Case, Reason } from '../case.ts'

/** What the gates may look at beside the case. Nothing here changes while a batch is judged. */
export interface Rules {
  readonly budgets: readonly BudgetConfiguration[]
  /** Events further from their root than this are denied. */
  readonly maxHops: number
}

export interface GateInput {
  readonly case: Case
  readonly rules: Rules
  /** The record already has its verdicts. */
  readonly isStored: boolean
  /** An earlier delivery of the same agent and ordering key waits. */
  readonly isBehind: boolean
  /** The one clock reading of the attempt. */
  readonly atMs: number
  /** Answer of the limiter; null before it was asked, and where no rate applies. */
  readonly rate: RateAnswer | null
}

/** What the limiter says about one delivery. */
export type RateAnswer =
  | { readonly kind: 'passed'; readonly degraded: boolean }
  | {
      readonly kind: 'reserved'
      /** When its slot comes, milliseconds since 1970. */
      readonly slotMs: number
      /** The rate that made it wait longest. */
      readonly scope: RateScope
      readonly used: number
      readonly degraded: boolean
    }
  /** An earlier delivery of the same group was told to wait in the same call: this one was not asked for. */
  | { readonly kind: 'behind' }

export type GateOutcome =
  | { readonly kind: 'pass'; readonly reasons?: readonly Reason[] }
  | { readonly kind: 'stored' }
  | { readonly kind: 'unrouted'; readonly reasons: readonly Reason[] }
  | { readonly kind: 'deny'; readonly reasons: readonly Reason[] }
  | { readonly kind: 'defer'; readonly reasons: readonly Reason[]; readonly notBeforeMs: number | null }
  /** Only the limiter can tell. */
  | { readonly kind: 'ask_rate'; readonly scopes: readonly RateScope[] }
  /** Only the ledger can tell, in the statement that stores the verdict. */
  | { readonly kind: 'ask_ledger'; readonly ceilings: readonly CeilingAsk[] }

export interface Gate {
  readonly name: string
  judge(input: GateInput): GateOutcome
}

export const pass: GateOutcome = { kind: 'pass' }
