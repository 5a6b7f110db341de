import { budgetsOf } from '../policy-instance.ts'
import { attemptKey, budgetKey } from '../stand-ins/tables.ts'
import type { World } from '../context.ts'

/** 11: the ledger folds to the budgets; nothing is charged for a verdict that is not allow; no budget is overdrawn. */
export function ledgerFolds(world: World): void {
  const { tables, monitor } = world
  const sums = new Map<string, number>()
  for (const charge of tables.charges.values()) {
    if (charge.voidedAtMs !== null) continue
    const key = budgetKey(charge.budget, charge.windowStartMs)
    sums.set(key, (sums.get(key) ?? 0) + charge.amount)
    const verdict = tables.verdicts.get(attemptKey({ decisionId: charge.chargeId, attempt: charge.attempt }))
    if (verdict?.verdict !== 'allow') {
      monitor.violate(
        'a charge belongs to an allowed attempt',
        `${charge.chargeId} attempt ${charge.attempt} is charged`,
      )
    }
  }
  const limits = budgetsOf(world.scenario).flatMap(budget => (budget.kind === 'ceiling' ? [budget.limit] : []))
  for (const [key, { budget, windowStartMs, used }] of tables.budgets) {
    if (used !== (sums.get(key) ?? 0)) {
      monitor.violate(
        'the ledger folds to the budgets',
        `${budget} has ${used} used, its charges are ${sums.get(key) ?? 0}`,
      )
    }
    // A restored Postgres grants what it has forgotten until every partition has been taken over and its rows are made again.
    if (!monitor.wasRestored && limits.some(limit => used > limit)) {
      monitor.violate(
        'no ceiling is overdrawn',
        `${used} of ${limits.join(', ')} are used of ${budget} in window ${windowStartMs}`,
      )
    }
  }
  allowedAreCharged(world, limits.length > 0)
}

function allowedAreCharged({ tables, monitor }: World, hasCeilings: boolean): void {
  if (!hasCeilings) return
  for (const verdict of tables.verdicts.values()) {
    if (verdict.verdict !== 'allow') continue
    const isCharged = [...tables.charges.values()].some(({ chargeId }) => chargeId === verdict.decisionId)
    if (!isCharged) monitor.violate('no allow without its charges', `${verdict.decisionId} attempt ${verdict.attempt}`)
  }
}
