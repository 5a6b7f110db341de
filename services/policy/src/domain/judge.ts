import type { CeilingAsk, RateScope } from './budgets.ts'
import type { Case, Reason, Verdict } from './case.ts'
import type { GateInput, RateAnswer, Rules } from './gates/gate.ts'
import { gates } from './gates/table.ts'

/** A verdict as far as the gates can tell; the ledger has the last word on ceilings. */
export interface Proposal {
  readonly case: Case
  readonly verdict: Exclude<Verdict, 'parked' | 'stale'>
  readonly reasons: readonly Reason[]
  readonly notBeforeMs: number | null
  readonly ceilings: readonly CeilingAsk[]
}

export type Judgement =
  | { readonly kind: 'proposed'; readonly proposal: Proposal }
  | { readonly kind: 'stored' }
  | { readonly kind: 'ask_rate'; readonly scopes: readonly RateScope[] }

/** Runs the gates in order. Pure: the same input gives the same judgement. */
export function judge(input: GateInput): Judgement {
  const reasons: Reason[] = []
  let ceilings: readonly CeilingAsk[] = []
  for (const gate of gates) {
    const outcome = gate.judge(input)
    switch (outcome.kind) {
      case 'pass':
        reasons.push(...(outcome.reasons ?? []))
        break
      case 'ask_ledger':
        ceilings = outcome.ceilings
        break
      case 'stored':
      case 'ask_rate':
        return outcome
      case 'deny':
      case 'unrouted':
        return proposed(input.case, outcome.kind, [...outcome.reasons, ...reasons], null)
      case 'defer':
        return proposed(input.case, 'defer', [...outcome.reasons, ...reasons], outcome.notBeforeMs)
    }
  }
  return { kind: 'proposed', proposal: { case: input.case, verdict: 'allow', reasons, notBeforeMs: null, ceilings } }
}

function proposed(
  subject: Case,
  verdict: Proposal['verdict'],
  reasons: readonly Reason[],
  notBeforeMs: number | null,
): Judgement {
  return { kind: 'proposed', proposal: { case: subject, verdict, reasons, notBeforeMs, ceilings: [] } }
}

export interface JudgeContext {
  readonly rules: Rules
  readonly atMs: number
  isStored(subject: Case): boolean
  /** Whether an earlier delivery of the case's agent and ordering key waits. */
  isBehind(subject: Case): boolean
  rateOf(subject: Case): RateAnswer | null
}

export function judgeCase(subject: Case, context: JudgeContext): Judgement {
  return judge({
    case: subject,
    rules: context.rules,
    isStored: context.isStored(subject),
    isBehind: context.isBehind(subject),
    atMs: context.atMs,
    rate: context.rateOf(subject),
  })
}
