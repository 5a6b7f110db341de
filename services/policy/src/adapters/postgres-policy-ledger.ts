import { WeirError, type ClaimContext, type LogPosition, type Ownership, type StageBatch } from '@weir/core'
import { placeholders, positionArrays, type Database, type SqlValue } from '@weir/postgres'
import type { Candidate, WaitingDelivery } from '../domain/release.ts'
import type { Restoration } from '../domain/restore.ts'
import type {
  AttemptId,
  ClaimRequest,
  GroupQuestion,
  Look,
  PolicyLedger,
  StoredVerdict,
  WaitingLook,
  WaitingPlace,
} from '../ports.ts'
import { claimParameters } from './claim-parameters.ts'
import { restoreParameters } from './restore-parameters.ts'
import { verdictOf, type VerdictRow } from './verdict-row.ts'

interface LookRow {
  readonly now_ms: number
  readonly stored: readonly VerdictRow[]
  readonly waiting: readonly WaitingPlace[]
}

const lookSql = `
select (extract(epoch from clock_timestamp()) * 1000)::bigint as now_ms,
  (select coalesce(jsonb_agg(to_jsonb(v) || jsonb_build_object('override_code', o.code, 'override_detail', o.detail,
     'delivery', case when d.decision_id is not null then jsonb_build_object('number', d.deliveries, 'maxAttempts', d.max_attempts,
       'backoffMs', d.backoff_ms, 'deadlineMs', d.deadline_ms) end)
     order by v."offset", v.agent), '[]')
   from policy.verdict v left join policy.override o on o.decision_id = v.decision_id and o.attempt = v.attempt
   left join policy.delivery d on d.decision_id = v.decision_id
   where (v.decision_id, v.attempt) in (
     select r.decision_id, r.attempt from policy.verdict r
     where r.log_id = $1 and r.partition = $2 and r."offset" between $3 and $4
     union select * from unnest($10::uuid[], $11::int[])
   )) as stored,
  (select coalesce(jsonb_agg(jsonb_build_object('decisionId', w.decision_id, 'agent', q.agent, 'orderingKey', q.ordering_key,
     'logId', q.log_id, 'offset', w."offset")), '[]')
   from unnest($5::text[], $6::text[], $7::uuid[], $8::bigint[], $9::int[])
     as q (agent, ordering_key, log_id, below_offset, at_most)
   cross join lateral (
     select n.decision_id, n."offset" from policy.waiting n
     where n.partition = $2 and n.agent = q.agent and n.ordering_key = q.ordering_key and n.log_id = q.log_id
       and n."offset" < q.below_offset
     order by n."offset" limit q.at_most
   ) w) as waiting`

const claimSql = `select * from policy.claim(${placeholders(37)})`

/** Only deliveries whose own event is known committed; the first of each group, in order. */
const candidatesSql = `
with placed as (
  select w.decision_id, w.agent, w.ordering_key, w.tenant, w.log_id, w."offset", w.next_attempt, w.released_attempt,
         w.released_at_ms, w.not_before_ms, w.ended_attempt, octet_length(w.event) as event_bytes,
         row_number() over (partition by w.agent, w.ordering_key order by w."offset") as place
  from policy.waiting w where w.partition = $1
)
select p.decision_id, p.agent, p.ordering_key, p.tenant, p.next_attempt, p.released_attempt, p.released_at_ms, p.not_before_ms,
       p.ended_attempt is not null as has_ended, p.event_bytes
from placed p
join unnest($2::uuid[], $3::bigint[]) as c (log_id, emitted_below) on c.log_id = p.log_id and p."offset" < c.emitted_below
where p.place <= $4
order by p."offset", p.agent`

const depthSql = `
select count(*) as depth, min(not_before_ms) as oldest_due_ms, (extract(epoch from clock_timestamp()) * 1000)::bigint as now_ms
from policy.waiting where partition = $1`

const fetchSql = `
select decision_id, agent, next_attempt, log_id, partition, "offset", event, rate_reserved, cause
from policy.waiting where partition = $1 and decision_id = any ($2::uuid[]) and ended_attempt is null`

interface CandidateRow {
  readonly decision_id: string
  readonly agent: string
  readonly ordering_key: string
  readonly tenant: string
  readonly next_attempt: number
  readonly released_attempt: number
  readonly released_at_ms: number | null
  readonly not_before_ms: number | null
  readonly has_ended: boolean
  readonly event_bytes: number
}

interface WaitingRow {
  readonly decision_id: string
  readonly agent: string
  readonly next_attempt: number
  readonly log_id: string
  readonly partition: number
  readonly offset: number
  readonly event: Buffer
  readonly rate_reserved: boolean
  readonly cause: 'due' | 'again'
}

/** The ledger in Postgres: migrations 000004 and 000008. Each write is one function call that begins by proving ownership. */
export class PostgresPolicyLedger implements PolicyLedger {
  readonly #db: Database

  constructor(db: Database) {
    this.#db = db
  }

  async look(batch: StageBatch, attempts: readonly AttemptId[], questions: readonly GroupQuestion[]): Promise<Look> {
    const first = batch.records[0]?.offset ?? 0
    const last = batch.records.at(-1)?.offset ?? -1
    const params: SqlValue[] = [
      batch.logId,
      batch.partition,
      first,
      last,
      questions.map(question => question.agent),
      questions.map(question => question.orderingKey),
      questions.map(question => question.logId),
      questions.map(question => question.belowOffset),
      questions.map(question => question.limit),
      attempts.map(({ decisionId }) => decisionId),
      attempts.map(({ attempt }) => attempt),
    ]
    const [row] = await this.#db.query<LookRow>(lookSql, params, { prepareAs: 'policy_look' })
    if (row === undefined) throw new WeirError('internal', 'policy look gave no row')
    return { stored: row.stored.map(verdictOf), waiting: row.waiting, nowMs: row.now_ms }
  }

  async claim(
    batch: StageBatch,
    context: ClaimContext,
    requests: readonly ClaimRequest[],
    at: { readonly atMs: number; readonly configVersion: string },
  ): Promise<readonly StoredVerdict[] | null> {
    const params = claimParameters(batch, context, requests, at)
    const rows = await this.#db.query<VerdictRow & { mine: boolean }>(claimSql, params, { prepareAs: 'policy_claim' })
    if (rows[0]?.mine === false) return null
    if (rows.length !== requests.length) {
      throw new WeirError('internal', `policy.claim answered ${rows.length} of ${requests.length} proposals`)
    }
    return rows.map((row, i) => {
      const subject = requests[i]?.proposal.case
      return verdictOf({ ...row, decision_id: subject?.decisionId ?? '', attempt: subject?.attempt ?? 0 })
    })
  }

  async park(
    ownership: Ownership,
    deliveries: readonly AttemptId[],
    why: { readonly code: string; readonly detail: string; readonly atMs: number },
  ): Promise<boolean> {
    const [row] = await this.#db.query<{ mine: boolean }>('select policy.park($1, $2, $3, $4, $5, $6, $7) as mine', [
      ownership.partition,
      ownership.epoch,
      deliveries.map(delivery => delivery.decisionId),
      deliveries.map(delivery => delivery.attempt),
      why.code,
      why.detail,
      why.atMs,
    ])
    return row?.mine === true
  }

  async settle(
    ownership: Ownership,
    committed: readonly LogPosition[],
    decisionIds: readonly string[] | null,
  ): Promise<boolean> {
    const [row] = await this.#db.query<{ deleted: number }>(
      'select policy.settle($1, $2, $3, $4, $5, $6, $7) as deleted',
      [ownership.partition, ownership.epoch, ...positionArrays(committed), decisionIds],
    )
    return (row?.deleted ?? -1) >= 0
  }

  async candidates(ownership: Ownership, committed: readonly LogPosition[], perGroup: number): Promise<WaitingLook> {
    const { partition } = ownership
    const [summary] = await this.#db.query<{ depth: number; oldest_due_ms: number | null; now_ms: number }>(
      depthSql,
      [partition],
      { prepareAs: 'policy_depth' },
    )
    const nowMs = summary?.now_ms ?? 0
    const depth = summary?.depth ?? 0
    if (depth === 0) return { candidates: [], depth, oldestDueMs: null, nowMs }
    const rows = await this.#db.query<CandidateRow>(
      candidatesSql,
      [partition, committed.map(({ logId }) => logId), committed.map(({ emittedBelow }) => emittedBelow), perGroup],
      { prepareAs: 'policy_candidates' },
    )
    return { candidates: rows.map(candidateOf), depth, oldestDueMs: summary?.oldest_due_ms ?? null, nowMs }
  }

  async fetchWaiting(ownership: Ownership, decisionIds: readonly string[]): Promise<readonly WaitingDelivery[]> {
    const rows = await this.#db.query<WaitingRow>(fetchSql, [ownership.partition, decisionIds])
    return rows.map(row => ({
      decisionId: row.decision_id,
      agent: row.agent,
      attempt: row.next_attempt,
      logId: row.log_id,
      partition: row.partition,
      offset: row.offset,
      event: row.event,
      rateReserved: row.rate_reserved,
      cause: row.cause,
    }))
  }

  async markReleased(ownership: Ownership, released: readonly AttemptId[]): Promise<boolean> {
    const [row] = await this.#db.query<{ mine: boolean }>('select policy.mark_released($1, $2, $3, $4) as mine', [
      ownership.partition,
      ownership.epoch,
      released.map(({ decisionId }) => decisionId),
      released.map(({ attempt }) => attempt),
    ])
    return row?.mine === true
  }

  async restore(ownership: Ownership, rows: Restoration): Promise<number | null> {
    const sql = `select policy.restore(${placeholders(28)}) as restored`
    const [row] = await this.#db.query<{ restored: number }>(sql, restoreParameters(ownership, rows))
    const restored = row?.restored ?? -1
    if (restored < 0) return null
    const parked = rows.parked[0]
    if (parked === undefined) return restored
    const why = {
      code: parked.reasons[0]?.code ?? 'refused',
      detail: parked.reasons[0]?.detail ?? '',
      atMs: parked.atMs,
    }
    return (await this.park(ownership, rows.parked, why)) ? restored : null
  }
}

function candidateOf(row: CandidateRow): Candidate {
  return {
    decisionId: row.decision_id,
    agent: row.agent,
    orderingKey: row.ordering_key,
    tenant: row.tenant,
    nextAttempt: row.next_attempt,
    releasedAttempt: row.released_attempt,
    releasedAtMs: row.released_at_ms,
    notBeforeMs: row.not_before_ms,
    hasEnded: row.has_ended,
    eventBytes: row.event_bytes,
  }
}
