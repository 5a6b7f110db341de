import type { Ownership } from '@weir/core'
import type { SqlValue } from '@weir/postgres'
import type { Restoration } from '../domain/restore.ts'

/** The parameters of policy.restore, in its order. */
export function restoreParameters({ partition, epoch }: Ownership, rows: Restoration): SqlValue[] {
  const decisions = rows.verdicts.map(({ decision }) => decision)
  const charges = decisions.flatMap((decision, i) => decision.charges.map(charge => ({ entry: i + 1, charge })))
  const waiting = rows.verdicts.flatMap(({ decision, waiting: row }, i) =>
    row === null ? [] : [{ entry: i + 1, decision, row }],
  )
  return [
    partition,
    epoch,
    decisions.map(({ decisionId }) => decisionId),
    decisions.map(({ attempt }) => attempt),
    decisions.map(({ agent }) => agent ?? ''),
    decisions.map(({ agents }) => JSON.stringify(agents)),
    decisions.map(({ input }) => input.logId),
    decisions.map(({ input }) => input.offset),
    decisions.map(({ verdict }) => verdict),
    decisions.map(({ reasons }) => JSON.stringify(reasons)),
    decisions.map(decision => JSON.stringify(decision.charges)),
    decisions.map(({ notBeforeMs }) => notBeforeMs),
    decisions.map(({ atMs }) => atMs),
    decisions.map(({ configVersion }) => configVersion),
    charges.map(({ entry }) => entry),
    charges.map(({ charge }) => charge.budget),
    charges.map(({ charge }) => charge.windowStartMs),
    charges.map(({ charge }) => charge.amount),
    waiting.map(({ entry }) => entry),
    waiting.map(({ decision }) => decision.tenant),
    waiting.map(({ decision }) => decision.orderingKey),
    waiting.map(({ row }) => row.origin.logId),
    waiting.map(({ row }) => row.origin.offset),
    waiting.map(({ row }) => row.event),
    waiting.map(({ row }) => row.rateReserved),
    waiting.map(({ decision }) => decision.eventKey),
    rows.ended.map(({ decisionId }) => decisionId),
    rows.ended.map(({ attempt }) => attempt),
  ]
}
