import { ceilingAsks } from '../budgets.ts'
import { pass, type Gate } from './gate.ts'

/** Ceilings are exact: the ledger decides in the statement that stores the verdict, and charges all of them or none. */
export const ceiling: Gate = {
  name: 'ceiling',
  judge: ({ case: { item, isAgain }, rules, atMs }) => {
    // Charged once per decision: a further attempt of the same delivery is not asked again.
    if (isAgain) return pass
    const ceilings = ceilingAsks(rules.budgets, item.event, atMs)
    return ceilings.length === 0 ? pass : { kind: 'ask_ledger', ceilings }
  },
}
