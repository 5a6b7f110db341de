import type { Charge, Reason, Verdict } from '../domain/case.ts'
import type { StoredVerdict } from '../ports.ts'

/** A row of policy.verdict with its override. */
export interface VerdictRow {
  readonly decision_id: string
  readonly attempt: number
  readonly agent: string
  readonly agents: readonly string[]
  readonly log_id: string
  readonly partition: number
  readonly offset: number
  readonly verdict: Verdict
  readonly reasons: readonly Reason[]
  readonly charges: readonly Charge[]
  readonly not_before_ms: number | null
  readonly at_ms: number
  readonly config_version: string
  readonly override_code: string | null
  readonly override_detail: string | null
  readonly delivery: StoredVerdict['delivery']
}

export function verdictOf(row: VerdictRow): StoredVerdict {
  const { override_code: code, override_detail: detail } = row
  return {
    decisionId: row.decision_id,
    attempt: row.attempt,
    agent: row.agent,
    agents: row.agents,
    logId: row.log_id,
    partition: row.partition,
    offset: row.offset,
    verdict: row.verdict,
    reasons: row.reasons,
    charges: row.charges,
    notBeforeMs: row.not_before_ms,
    atMs: row.at_ms,
    configVersion: row.config_version,
    delivery: row.delivery,
    override: code === null ? null : { code, detail: detail ?? '' },
  }
}
