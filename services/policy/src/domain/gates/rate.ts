import { rateScopes } from '../budgets.ts'
import { reason, slotReserved } from '../case.ts'
import { pass, type Gate } from './gate.ts'

const degraded = reason('rate', 'degraded', 'the limiter did not answer: this instance used its own share of the rate')

/** Rates smooth: what is above is deferred to a slot that is reserved for it, and not asked again. */
export const rate: Gate = {
  name: 'rate',
  judge: ({ case: { item, rateReserved }, rules, rate: answer }) => {
    if (rateReserved) return pass
    if (answer === null) {
      const scopes = rateScopes(rules.budgets, item.event)
      return scopes.length === 0 ? pass : { kind: 'ask_rate', scopes }
    }
    if (answer.kind === 'behind') return pass
    const extra = answer.degraded ? [degraded] : []
    if (answer.kind === 'passed') return { kind: 'pass', reasons: extra }
    const { scope, slotMs, used } = answer
    const detail = `${scope.rule} lets ${scope.limit} pass per ${scope.periodSeconds} s; a slot is reserved`
    const numbers = { rule: scope.rule, limit: scope.limit, used }
    return { kind: 'defer', notBeforeMs: slotMs, reasons: [reason('rate', slotReserved, detail, numbers), ...extra] }
  },
}
