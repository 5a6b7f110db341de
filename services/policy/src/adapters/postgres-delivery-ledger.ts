import { WeirError, type ClaimContext, type LogPosition, type Ownership, type StageBatch } from '@weir/core'
import { placeholders, positionArrays, type Database, type SqlValue } from '@weir/postgres'
import type { OpenDelivery, StoredOutcome } from '../domain/outcome.ts'
import type { DeliveryRestoration } from '../domain/restore-deliveries.ts'
import type {
  AttemptId,
  DeliveryDirectory,
  DeliveryLedger,
  FoundDelivery,
  OverdueDelivery,
  ReportKey,
  ReportLook,
} from '../ports.ts'

const nowSql = '(extract(epoch from clock_timestamp()) * 1000)::bigint as now_ms'

const deliveriesSql = `
select d.decision_id, d.agent, d.state, d.attempt, d.deliveries, d.parked_code, d.max_attempts, d.backoff_ms, d.deadline_ms, d.event,
       d.log_id, d.partition, d."offset"
from policy.delivery d where d.decision_id = any ($1::uuid[]) and d.partition = $2`

const findSql = `
select d.decision_id, d.agent, d.state, d.attempt, d.deliveries, d.parked_code, d.max_attempts, d.backoff_ms, d.deadline_ms, d.event,
       d.log_id, d.partition, d."offset", d.tenant, d.ordering_key, d.event_key, d.overdue_at_ms
from policy.delivery d where d.decision_id = any ($1::uuid[])`

/** Outcomes of these records, and of these attempts perhaps from other records. */
const outcomesSql = `
select o.decision_id, o.attempt, o.kind, o.log_id, o.partition, o."offset", o.status, o.effects, o.result, o.code, o.not_before_ms, o.at_ms
from policy.outcome o
where (o.decision_id, o.attempt, o.kind) in (select * from unnest($1::uuid[], $2::int[], $3::text[]))`

const overdueSql = `
select d.decision_id, d.attempt, d.agent, d.event, t.now_ms
from (select ${nowSql}) t
cross join policy.delivery d
join policy.verdict v on v.decision_id = d.decision_id and v.attempt = d.attempt
join unnest($2::uuid[], $3::bigint[]) as c (log_id, emitted_below) on c.log_id = v.log_id and v."offset" < c.emitted_below
where d.partition = $1 and d.state = 'in_progress' and d.overdue_at_ms < t.now_ms and d.event is not null
  and (d.overdue_produced_at_ms is null or d.overdue_produced_at_ms < t.now_ms - $4::bigint)
order by d.overdue_at_ms limit $5`

const claimSql = `select policy.claim_outcomes(${placeholders(17)}) as mine`
const restoreSql = `select policy.restore_deliveries(${placeholders(38)}) as restored`

interface DeliveryRow {
  readonly decision_id: string
  readonly agent: string
  readonly state: OpenDelivery['state']
  readonly attempt: number
  readonly deliveries: number
  readonly parked_code: string | null
  readonly max_attempts: number
  readonly backoff_ms: number
  readonly deadline_ms: number
  readonly event: Buffer | null
  readonly log_id: string
  readonly partition: number
  readonly offset: number
}

interface OverdueRow extends Pick<DeliveryRow, 'decision_id' | 'attempt' | 'agent'> {
  readonly event: Buffer
  readonly now_ms: number
}

interface FoundRow extends DeliveryRow {
  readonly tenant: string
  readonly ordering_key: string
  readonly event_key: Buffer
  readonly overdue_at_ms: number
}

interface OutcomeRow extends Pick<StoredOutcome, 'kind' | 'status' | 'effects' | 'result' | 'code' | 'partition'> {
  readonly decision_id: string
  readonly attempt: number
  readonly log_id: string
  readonly offset: number
  readonly not_before_ms: number | null
  readonly at_ms: number
}

/** The ledger of deliveries in Postgres: migration 000008. Each write is one function call that begins by proving ownership. */
export class PostgresDeliveryLedger implements DeliveryLedger, DeliveryDirectory {
  readonly #db: Database

  constructor(db: Database) {
    this.#db = db
  }

  async lookReports(batch: StageBatch, keys: readonly ReportKey[]): Promise<ReportLook> {
    const ids = keys.map(({ decisionId }) => decisionId)
    const [deliveries, outcomes, nowMs] = await Promise.all([
      this.#db.query<DeliveryRow>(deliveriesSql, [ids, batch.partition], { prepareAs: 'policy_deliveries' }),
      this.#db.query<OutcomeRow>(outcomesSql, [ids, keys.map(({ attempt }) => attempt), keys.map(({ kind }) => kind)], {
        prepareAs: 'policy_outcomes',
      }),
      this.#now(),
    ])
    return { deliveries: deliveries.map(deliveryOf), outcomes: outcomes.map(outcomeOf), nowMs }
  }

  async find(decisionIds: readonly string[]): Promise<readonly FoundDelivery[]> {
    const rows = await this.#db.query<FoundRow>(findSql, [decisionIds], { prepareAs: 'policy_find' })
    return rows.map(row => ({
      ...deliveryOf(row),
      tenant: row.tenant,
      orderingKey: row.ordering_key,
      eventKey: row.event_key,
      partition: row.partition,
      overdueAtMs: row.overdue_at_ms,
    }))
  }

  async claimReports(
    batch: StageBatch,
    { ownership, committed }: ClaimContext,
    rows: readonly StoredOutcome[],
    atMs: number,
  ): Promise<boolean> {
    const params: SqlValue[] = [
      ownership.partition,
      ownership.epoch,
      ...positionArrays(committed),
      batch.logId,
      atMs,
      rows.map(({ offset }) => offset),
      rows.map(({ decisionId }) => decisionId),
      rows.map(({ attempt }) => attempt),
      rows.map(({ kind }) => kind),
      rows.map(({ status }) => status),
      rows.map(({ effects }) => effects),
      rows.map(({ result }) => result),
      rows.map(({ code }) => code),
      rows.map(({ notBeforeMs }) => notBeforeMs),
    ]
    const [row] = await this.#db.query<{ mine: boolean }>(claimSql, params, { prepareAs: 'policy_claim_outcomes' })
    return row?.mine === true
  }

  async overdue(
    ownership: Ownership,
    committed: readonly LogPosition[],
    ask: { readonly limit: number; readonly againAfterMs: number },
  ): Promise<{ readonly deliveries: readonly OverdueDelivery[]; readonly nowMs: number }> {
    const rows = await this.#db.query<OverdueRow>(
      overdueSql,
      [
        ownership.partition,
        committed.map(({ logId }) => logId),
        committed.map(({ emittedBelow }) => emittedBelow),
        ask.againAfterMs,
        ask.limit,
      ],
      { prepareAs: 'policy_overdue' },
    )
    const deliveries = rows.map(({ decision_id, attempt, agent, event }) => ({
      decisionId: decision_id,
      attempt,
      agent,
      event,
    }))
    return { deliveries, nowMs: rows[0]?.now_ms ?? 0 }
  }

  async markOverdue(ownership: Ownership, overdue: readonly AttemptId[]): Promise<boolean> {
    const [row] = await this.#db.query<{ mine: boolean }>('select policy.mark_overdue($1, $2, $3, $4) as mine', [
      ownership.partition,
      ownership.epoch,
      overdue.map(({ decisionId }) => decisionId),
      overdue.map(({ attempt }) => attempt),
    ])
    return row?.mine === true
  }

  async restoreDeliveries(ownership: Ownership, rows: DeliveryRestoration): Promise<number | null> {
    const [row] = await this.#db.query<{ restored: number }>(restoreSql, restoreDeliveriesParameters(ownership, rows))
    const restored = row?.restored ?? -1
    return restored < 0 ? null : restored
  }

  async expire(
    ownership: Ownership,
    { beforeMs, limit }: { readonly beforeMs: number; readonly limit: number },
  ): Promise<number | null> {
    const { partition, epoch } = ownership
    const [row] = await this.#db.query<{ removed: number }>('select policy.expire($1, $2, $3, $4) as removed', [
      partition,
      epoch,
      beforeMs,
      limit,
    ])
    const removed = row?.removed ?? -1
    return removed < 0 ? null : removed
  }

  async #now(): Promise<number> {
    const [row] = await this.#db.query<{ now_ms: number }>(`select ${nowSql}`, [], { prepareAs: 'policy_now' })
    if (row === undefined) throw new WeirError('internal', 'Postgres gave no time')
    return row.now_ms
  }
}

function restoreDeliveriesParameters({ partition, epoch }: Ownership, rows: DeliveryRestoration): SqlValue[] {
  const { deliveries, outcomes, versions } = rows
  return [
    partition,
    epoch,
    deliveries.map(({ decisionId }) => decisionId),
    deliveries.map(({ agent }) => agent),
    deliveries.map(({ tenant }) => tenant),
    deliveries.map(({ orderingKey }) => orderingKey),
    deliveries.map(({ eventKey }) => eventKey),
    deliveries.map(({ origin }) => origin.logId),
    deliveries.map(({ origin }) => origin.offset),
    deliveries.map(({ event }) => event),
    deliveries.map(({ attempt }) => attempt),
    deliveries.map(({ deliveries: count }) => count),
    deliveries.map(({ state }) => state),
    deliveries.map(({ parkedCode }) => parkedCode),
    deliveries.map(({ maxAttempts }) => maxAttempts),
    deliveries.map(({ backoffMs }) => backoffMs),
    deliveries.map(({ deadlineMs }) => deadlineMs),
    deliveries.map(({ overdueAtMs }) => overdueAtMs),
    deliveries.map(({ ended }) => ended?.logId ?? null),
    deliveries.map(({ ended }) => ended?.offset ?? null),
    deliveries.map(({ notBeforeMs }) => notBeforeMs),
    outcomes.map(({ decisionId }) => decisionId),
    outcomes.map(({ attempt }) => attempt),
    outcomes.map(({ kind }) => kind),
    outcomes.map(({ logId }) => logId),
    outcomes.map(({ offset }) => offset),
    outcomes.map(({ status }) => status),
    outcomes.map(({ effects }) => effects),
    outcomes.map(({ result }) => result),
    outcomes.map(({ code }) => code),
    outcomes.map(({ notBeforeMs }) => notBeforeMs),
    outcomes.map(({ atMs }) => atMs),
    versions.map(({ agent }) => agent),
    versions.map(({ orderingKey }) => orderingKey),
    versions.map(({ version }) => version.kind),
    versions.map(({ version }) => version.text),
    versions.map(({ decisionId }) => decisionId),
    versions.map(({ atMs }) => atMs),
  ]
}

function deliveryOf(row: DeliveryRow): OpenDelivery {
  return {
    decisionId: row.decision_id,
    agent: row.agent,
    state: row.state,
    attempt: row.attempt,
    deliveries: row.deliveries,
    parkedCode: row.parked_code,
    maxAttempts: row.max_attempts,
    backoffMs: row.backoff_ms,
    deadlineMs: row.deadline_ms,
    event: row.event,
    origin: { logId: row.log_id, partition: row.partition, offset: row.offset },
  }
}

function outcomeOf(row: OutcomeRow): StoredOutcome {
  const { kind, status, effects, result, code, partition, attempt, offset } = row
  return {
    decisionId: row.decision_id,
    attempt,
    kind,
    logId: row.log_id,
    partition,
    offset,
    status,
    effects,
    result,
    code,
    notBeforeMs: row.not_before_ms,
    atMs: row.at_ms,
  }
}
