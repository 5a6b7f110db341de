// policy.restore of migration 000004.
import type { Restoration, StoredVerdict } from './ports.ts'
import { attemptKey, use, type Tables } from './tables.ts'

type Restored = Restoration['verdicts'][number]

export function restoreVerdicts(tables: Tables, partition: number, { verdicts, ended }: Restoration): number {
  const won = verdicts.filter(({ decision }) => !tables.verdicts.has(attemptKey(decision)))
  for (const { decision } of won) tables.verdicts.set(attemptKey(decision), verdictOf(decision, partition))
  for (const { decision } of won) {
    for (const { budget, windowStartMs, amount } of decision.charges) {
      const key = `${decision.decisionId}\n${budget}`
      if (tables.charges.has(key)) continue
      const { decisionId: chargeId, attempt } = decision
      tables.charges.set(key, { chargeId, budget, windowStartMs, amount, attempt, voidedAtMs: null })
      use(tables, { budget, windowStartMs }, amount)
    }
  }
  const waiting = verdicts.filter(verdict => letWait(tables, verdict, partition)).length
  for (const { decisionId, attempt } of ended) {
    const row = tables.waiting.get(decisionId)
    if (row?.partition === partition && row.nextAttempt <= attempt) tables.waiting.delete(decisionId)
  }
  return won.length + waiting
}

function verdictOf(decision: Restored['decision'], partition: number): StoredVerdict {
  return {
    decisionId: decision.decisionId,
    attempt: decision.attempt,
    agent: decision.agent ?? '',
    agents: decision.agents,
    logId: decision.input.logId,
    partition,
    offset: decision.input.offset,
    verdict: decision.verdict as StoredVerdict['verdict'],
    reasons: decision.reasons,
    charges: decision.charges,
    notBeforeMs: decision.notBeforeMs,
    atMs: decision.atMs,
    configVersion: decision.configVersion,
    delivery: null,
    override: null,
  }
}

/** A later verdict that was claimed and not emitted yet knows better. True when a row was made or moved on. */
function letWait(tables: Tables, { decision, waiting }: Restored, partition: number): boolean {
  if (waiting === null) return false
  const { decisionId, attempt, notBeforeMs, tenant, orderingKey } = decision
  for (const row of tables.verdicts.values()) {
    if (row.decisionId === decisionId && row.attempt > attempt) return false
  }
  const { rateReserved, event, origin } = waiting
  const nextAttempt = attempt + 1
  const known = tables.waiting.get(decisionId)
  if (known !== undefined) {
    if (known.nextAttempt >= nextAttempt) return false
    tables.waiting.set(decisionId, { ...known, notBeforeMs, rateReserved, nextAttempt })
    return true
  }
  tables.waiting.set(decisionId, {
    decisionId,
    agent: decision.agent ?? '',
    orderingKey,
    tenant,
    partition,
    logId: origin.logId,
    offset: origin.offset,
    event,
    notBeforeMs,
    rateReserved,
    nextAttempt,
    releasedAttempt: 0,
    releasedAtMs: null,
    endedAttempt: null,
    eventKey: decision.eventKey,
    cause: 'due',
  })
  return true
}
