// The functions and queries of policy's ledger (migration 000004), each one step.
import type { LogPosition, Ownership, StageBatch } from '@weir/core'
import { claimVerdicts } from './policy-claim.ts'
import { restoreVerdicts } from './policy-restore.ts'
import type { OwnerModel } from './owner-model.ts'
import type {
  AttemptId,
  ClaimTime,
  GroupQuestion,
  Look,
  ParkReason,
  PolicyClaimRequest,
  Restoration,
  StoredVerdict,
  WaitingDelivery,
  WaitingLook,
} from './ports.ts'
import { attemptKey, use, withOverride, type Tables, type WaitingRow } from './tables.ts'

export interface PolicyModel {
  look(batch: StageBatch, attempts: readonly AttemptId[], questions: readonly GroupQuestion[]): Look
  claim(
    batch: StageBatch,
    context: { readonly ownership: Ownership; readonly committed: readonly LogPosition[] },
    requests: readonly PolicyClaimRequest[],
    at: ClaimTime,
  ): readonly StoredVerdict[] | null
  park(ownership: Ownership, deliveries: readonly AttemptId[], why: ParkReason): boolean
  settle(ownership: Ownership, committed: readonly LogPosition[], decisionIds: readonly string[] | null): boolean
  candidates(ownership: Ownership, committed: readonly LogPosition[], perGroup: number): WaitingLook
  fetchWaiting(ownership: Ownership, decisionIds: readonly string[]): readonly WaitingDelivery[]
  markReleased(ownership: Ownership, released: readonly AttemptId[]): boolean
  restore(ownership: Ownership, rows: Restoration): number | null
}

export function createPolicyModel(tables: Tables, owners: OwnerModel, nowMs: () => number): PolicyModel {
  return {
    look: (batch, attempts, questions) => ({
      stored: storedOf(tables, batch, attempts),
      waiting: questions.flatMap(question => waitingBelow(tables, batch.partition, question)),
      nowMs: nowMs(),
    }),
    claim: (batch, { ownership, committed }, requests, at) => {
      if (!owners.own(ownership, committed)) return null
      return claimVerdicts(tables, batch, requests, at)
    },
    park: (ownership, deliveries, why) => owners.own(ownership, []) && park(tables, deliveries, why),
    settle: (ownership, committed, ids) => owners.own(ownership, committed) && settle(tables, ownership.partition, ids),
    candidates: (ownership, committed, perGroup) =>
      candidatesOf(tables, ownership.partition, { committed, perGroup, nowMs: nowMs() }),
    fetchWaiting: ({ partition }, ids) =>
      ids.flatMap(id => {
        const row = tables.waiting.get(id)
        return row === undefined || row.partition !== partition || row.endedAttempt !== null ? [] : [deliveryOf(row)]
      }),
    markReleased: (ownership, released) =>
      owners.own(ownership, []) && mark(tables, ownership.partition, released, nowMs()),
    restore: (ownership, rows) =>
      owners.own(ownership, []) ? restoreVerdicts(tables, ownership.partition, rows) : null,
  }
}

function storedOf(tables: Tables, batch: StageBatch, attempts: readonly AttemptId[]): StoredVerdict[] {
  const first = batch.records[0]?.offset ?? 0
  const last = batch.records.at(-1)?.offset ?? -1
  const asked = new Set(attempts.map(attemptKey))
  return [...tables.verdicts.entries()]
    .filter(([key, row]) => {
      const isOfBatch = row.logId === batch.logId && row.partition === batch.partition
      return asked.has(key) || (isOfBatch && row.offset >= first && row.offset <= last)
    })
    .map(([, row]) => withOverride(tables, row))
    .sort((a, b) => a.offset - b.offset || compare(a.agent, b.agent))
}

function waitingBelow(tables: Tables, partition: number, question: GroupQuestion): Look['waiting'] {
  const { agent, orderingKey, logId, belowOffset, limit } = question
  return [...tables.waiting.values()]
    .filter(row => row.partition === partition && row.agent === agent && row.orderingKey === orderingKey)
    .filter(row => row.logId === logId && row.offset < belowOffset)
    .sort((a, b) => a.offset - b.offset)
    .slice(0, limit)
    .map(row => ({ decisionId: row.decisionId, agent, orderingKey, logId, offset: row.offset }))
}

function park(tables: Tables, deliveries: readonly AttemptId[], { code, detail, atMs }: ParkReason): boolean {
  for (const delivery of deliveries) {
    const key = attemptKey(delivery)
    if (tables.verdicts.get(key)?.verdict !== 'allow' || tables.overrides.has(key)) continue
    tables.overrides.set(key, { code, detail })
    const verdict = tables.verdicts.get(key)
    const open = tables.deliveries.get(delivery.decisionId)
    if (open?.state === 'in_progress' && open.attempt === delivery.attempt && verdict !== undefined) {
      tables.deliveries.set(delivery.decisionId, { ...open, state: 'parked', parkedCode: code, ended: verdict })
    }
  }
  for (const [key, charge] of tables.charges) {
    const isVoid = deliveries.some(d => d.decisionId === charge.chargeId && d.attempt === charge.attempt)
    if (!isVoid || charge.voidedAtMs !== null) continue
    tables.charges.set(key, { ...charge, voidedAtMs: atMs })
    use(tables, charge, -charge.amount)
  }
  return true
}

function settle(tables: Tables, partition: number, ids: readonly string[] | null): boolean {
  for (const [id, row] of tables.waiting) {
    if (row.partition !== partition || row.endedAttempt === null || (ids !== null && !ids.includes(id))) continue
    const verdict = tables.verdicts.get(attemptKey({ decisionId: id, attempt: row.endedAttempt }))
    if (verdict !== undefined && isBelow(tables, partition, verdict)) tables.waiting.delete(id)
  }
  for (const [id, row] of tables.deliveries) {
    if (row.origin.partition !== partition || row.ended === null || row.event === null) continue
    if ((ids === null || ids.includes(id)) && isBelow(tables, partition, row.ended)) {
      tables.deliveries.set(id, { ...row, event: null })
    }
  }
  return true
}

function isBelow(
  tables: Tables,
  partition: number,
  verdict: { readonly logId: string; readonly offset: number },
): boolean {
  for (const row of tables.positions.values()) {
    if (row.stage !== 'policy' || row.partition !== partition || row.logId !== verdict.logId) continue
    if (row.emittedBelow > verdict.offset) return true
  }
  return false
}

function candidatesOf(
  tables: Tables,
  partition: number,
  ask: { readonly committed: readonly LogPosition[]; readonly perGroup: number; readonly nowMs: number },
): WaitingLook {
  const mine = [...tables.waiting.values()].filter(row => row.partition === partition)
  if (mine.length === 0) return { candidates: [], depth: 0, oldestDueMs: null, nowMs: ask.nowMs }
  const due = mine.flatMap(({ notBeforeMs }) => (notBeforeMs === null ? [] : [notBeforeMs]))
  const places = new Map<string, number>()
  const leading = mine
    .sort((a, b) => a.offset - b.offset || compare(a.agent, b.agent))
    .filter(row => {
      const group = `${row.agent}\n${row.orderingKey}`
      const place = (places.get(group) ?? 0) + 1
      places.set(group, place)
      return place <= ask.perGroup
    })
  const candidates = leading.filter(row =>
    ask.committed.some(({ logId, emittedBelow }) => logId === row.logId && row.offset < emittedBelow),
  )
  return {
    candidates: candidates.map(row => ({
      decisionId: row.decisionId,
      agent: row.agent,
      orderingKey: row.orderingKey,
      tenant: row.tenant,
      nextAttempt: row.nextAttempt,
      releasedAttempt: row.releasedAttempt,
      releasedAtMs: row.releasedAtMs,
      notBeforeMs: row.notBeforeMs,
      hasEnded: row.endedAttempt !== null,
      eventBytes: row.event.length,
    })),
    depth: mine.length,
    oldestDueMs: due.length === 0 ? null : Math.min(...due),
    nowMs: ask.nowMs,
  }
}

function deliveryOf(row: WaitingRow): WaitingDelivery {
  const { decisionId, agent, nextAttempt: attempt, logId, partition, offset, event, rateReserved, cause } = row
  return { decisionId, agent, attempt, logId, partition, offset, event, rateReserved, cause }
}

/** Only *that attempt*: a row that moved on is left alone. */
function mark(tables: Tables, partition: number, released: readonly AttemptId[], nowMs: number): boolean {
  for (const { decisionId, attempt } of released) {
    const row = tables.waiting.get(decisionId)
    if (row === undefined || row.partition !== partition || row.nextAttempt !== attempt) continue
    if (row.releasedAttempt > attempt || row.endedAttempt !== null) continue
    tables.waiting.set(decisionId, { ...row, releasedAttempt: attempt, releasedAtMs: nowMs })
  }
  return true
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
