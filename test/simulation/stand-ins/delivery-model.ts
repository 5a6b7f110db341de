// The functions and queries about deliveries and reports (migration 000008), each one step.
import type { LogPosition, Ownership, StageBatch } from '@weir/core'
import type { OwnerModel } from './owner-model.ts'
import type { AttemptId, DeliveryRestoration, OverdueLook, ReportKey, ReportLook, StoredOutcome } from './ports.ts'
import { attemptKey, type DeliveryRow, type Tables } from './tables.ts'

export interface DeliveryModel {
  lookReports(batch: StageBatch, keys: readonly ReportKey[]): ReportLook
  claimReports(
    batch: StageBatch,
    context: { readonly ownership: Ownership; readonly committed: readonly LogPosition[] },
    rows: readonly StoredOutcome[],
    atMs: number,
  ): boolean
  overdue(
    ownership: Ownership,
    committed: readonly LogPosition[],
    ask: { readonly limit: number; readonly againAfterMs: number },
  ): OverdueLook
  markOverdue(ownership: Ownership, overdue: readonly AttemptId[]): boolean
  restoreDeliveries(ownership: Ownership, rows: DeliveryRestoration): number | null
  expire(ownership: Ownership, ask: { readonly beforeMs: number; readonly limit: number }): number | null
}

const outcomeKey = (of: ReportKey): string => `${of.decisionId}:${of.attempt}:${of.kind}`

export function createDeliveryModel(tables: Tables, owners: OwnerModel, nowMs: () => number): DeliveryModel {
  return {
    lookReports: (batch, keys) => ({
      deliveries: [...new Set(keys.map(({ decisionId }) => decisionId))].flatMap(id => {
        const row = tables.deliveries.get(id)
        return row?.origin.partition === batch.partition ? [row] : []
      }),
      outcomes: keys.flatMap(key => tables.outcomes.get(outcomeKey(key)) ?? []),
      nowMs: nowMs(),
    }),
    claimReports: (_batch, { ownership, committed }, rows) => {
      if (!owners.own(ownership, committed)) return false
      for (const row of rows) if (!tables.outcomes.has(outcomeKey(row))) settle(tables, row)
      return true
    },
    overdue: ({ partition }, committed, { limit, againAfterMs }) => {
      const now = nowMs()
      const isDue = (row: DeliveryRow): boolean =>
        row.origin.partition === partition &&
        row.state === 'in_progress' &&
        row.overdueAtMs < now &&
        (row.overdueProducedAtMs === null || row.overdueProducedAtMs < now - againAfterMs) &&
        isCommitted(tables, row, committed)
      const due = [...tables.deliveries.values()].filter(isDue).sort((a, b) => a.overdueAtMs - b.overdueAtMs)
      const deliveries = due.slice(0, limit).flatMap(({ decisionId, attempt, agent, event }) => {
        return event === null ? [] : [{ decisionId, attempt, agent, event }]
      })
      return { deliveries, nowMs: now }
    },
    markOverdue: (ownership, overdue) => {
      if (!owners.own(ownership, [])) return false
      for (const { decisionId, attempt } of overdue) {
        const row = tables.deliveries.get(decisionId)
        if (row?.state !== 'in_progress' || row.attempt !== attempt) continue
        tables.deliveries.set(decisionId, { ...row, overdueProducedAtMs: nowMs() })
      }
      return true
    },
    restoreDeliveries: (ownership, rows) => (owners.own(ownership, []) ? restore(tables, rows) : null),
    // A run is shorter than what is kept.
    expire: ownership => (owners.own(ownership, []) ? 0 : null),
  }
}

function isCommitted(tables: Tables, row: DeliveryRow, committed: readonly LogPosition[]): boolean {
  const verdict = tables.verdicts.get(attemptKey(row))
  if (verdict === undefined) return false
  return committed.some(({ logId, emittedBelow }) => logId === verdict.logId && verdict.offset < emittedBelow)
}

function settle(tables: Tables, row: StoredOutcome): void {
  tables.outcomes.set(outcomeKey(row), row)
  const { decisionId, attempt, result, code, logId, offset, notBeforeMs } = row
  const delivery = tables.deliveries.get(decisionId)
  if (delivery === undefined || result === 'late' || result === 'moot') return
  const ended = result === 'again' ? null : { logId, offset }
  const state = result === 'again' ? 'waiting' : result
  tables.deliveries.set(decisionId, { ...delivery, state, parkedCode: result === 'parked' ? code : null, ended })
  if (result === 'again') letWait(tables, delivery, attempt + 1, notBeforeMs)
}

function letWait(tables: Tables, delivery: DeliveryRow, nextAttempt: number, notBeforeMs: number | null): boolean {
  const { decisionId, agent, orderingKey, tenant, origin, event, eventKey } = delivery
  const known = tables.waiting.get(decisionId)
  if (event === null || (known !== undefined && known.nextAttempt >= nextAttempt)) return false
  tables.waiting.set(decisionId, {
    decisionId,
    agent,
    orderingKey,
    tenant,
    ...origin,
    event,
    eventKey,
    notBeforeMs,
    rateReserved: false,
    nextAttempt,
    releasedAttempt: known?.releasedAttempt ?? 0,
    releasedAtMs: known?.releasedAtMs ?? null,
    endedAttempt: null,
    cause: 'again',
  })
  return true
}

function restore(tables: Tables, { deliveries, outcomes, versions }: DeliveryRestoration): number {
  let restored = 0
  for (const row of outcomes) {
    if (tables.outcomes.has(outcomeKey(row))) continue
    tables.outcomes.set(outcomeKey(row), row)
    restored++
  }
  const rank = { in_progress: 0, waiting: 1, completed: 2, parked: 2, deny: 2, stale: 2 }
  for (const row of deliveries) {
    const known = tables.deliveries.get(row.decisionId)
    const isNewer =
      known === undefined ||
      known.attempt < row.attempt ||
      (known.attempt === row.attempt && rank[known.state] < 2 && rank[known.state] < rank[row.state]) ||
      (known.attempt === row.attempt && known.state === 'parked' && row.state === 'completed')
    if (isNewer) {
      tables.deliveries.set(row.decisionId, { ...row, event: known?.event ?? row.event, overdueProducedAtMs: null })
      restored++
    }
    const isLater = [...tables.verdicts.values()].some(
      verdict => verdict.decisionId === row.decisionId && verdict.attempt > row.attempt,
    )
    const made = tables.deliveries.get(row.decisionId)
    if (row.state !== 'waiting' || isLater || made === undefined) continue
    if (letWait(tables, { ...made, event: row.event }, row.attempt + 1, row.notBeforeMs)) restored++
  }
  for (const { agent, orderingKey, version } of versions) {
    const key = `${agent}\n${orderingKey}`
    const known = tables.versions.get(key)
    const number = Number(version.text)
    if (known !== undefined && known.kind === version.kind && known.version >= number) continue
    tables.versions.set(key, { kind: version.kind, version: number })
    restored++
  }
  return restored
}
