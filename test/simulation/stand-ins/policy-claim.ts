// policy.claim of migration 000008.
import type { StageBatch } from '@weir/core'
import type { CeilingAsk, ClaimTime, PolicyClaimRequest, StoredVerdict } from './ports.ts'
import { attemptKey, budgetKey, use, withOverride, type Tables, type VersionRow } from './tables.ts'

type Reason = StoredVerdict['reasons'][number]
type Charge = StoredVerdict['charges'][number]

/** What the call makes of a proposal. */
interface Draft {
  readonly request: PolicyClaimRequest
  verdict: StoredVerdict['verdict']
  reasons: readonly Reason[]
  charges: readonly Charge[]
  notBeforeMs: number | null
}

export function claimVerdicts(
  tables: Tables,
  batch: StageBatch,
  requests: readonly PolicyClaimRequest[],
  at: ClaimTime,
): readonly StoredVerdict[] {
  const drafts = draftsOf(tables, requests)
  const won = drafts.filter(({ request }) => !tables.verdicts.has(attemptKey(request.proposal.case)))
  for (const draft of won) tables.verdicts.set(attemptKey(draft.request.proposal.case), verdictOf(draft, batch, at))
  for (const draft of won) charge(tables, draft)
  for (const draft of won) {
    if (draft.verdict === 'defer') letWait(tables, draft, batch.partition)
    else end(tables, draft)
    if (draft.verdict === 'allow') deliver(tables, draft, batch.partition, at)
    else if (draft.verdict !== 'defer') endDelivery(tables, draft, batch)
  }
  return requests.map(({ proposal }) => {
    const row = tables.verdicts.get(attemptKey(proposal.case))
    if (row === undefined) throw new Error('a verdict that was inserted or found is gone')
    return withOverride(tables, row)
  })
}

function draftsOf(tables: Tables, requests: readonly PolicyClaimRequest[]): Draft[] {
  const used = new Map<string, number>()
  for (const { proposal } of requests) {
    for (const { budget, windowStartMs } of proposal.ceilings) {
      const key = budgetKey(budget, windowStartMs)
      if (!tables.budgets.has(key)) tables.budgets.set(key, { budget, windowStartMs, used: 0 })
      used.set(key, tables.budgets.get(key)?.used ?? 0)
    }
  }
  const blocked = new Set<number>()
  const versions = new Map<string, VersionRow>()
  return requests.map(request => {
    const { verdict, reasons, notBeforeMs } = request.proposal
    const draft: Draft = { request, verdict, reasons, charges: [], notBeforeMs }
    if (tables.verdicts.has(attemptKey(request.proposal.case))) return draft
    if (isOlder(tables, versions, draft)) {
      Object.assign(draft, { verdict: 'stale', notBeforeMs: null, reasons: [older, ...draft.reasons] })
    } else if (draft.verdict === 'allow' && blocked.has(request.group)) {
      Object.assign(draft, { verdict: 'defer', notBeforeMs: null, reasons: [behind, ...draft.reasons] })
    } else if (draft.verdict === 'allow' && request.proposal.ceilings.length > 0) askCeilings(draft, used)
    if (draft.verdict === 'defer') blocked.add(request.group)
    const { agent, version, item } = request.proposal.case
    if (draft.verdict === 'allow' && version !== null) {
      versions.set(versionKey(agent, item.event.orderingKey), { kind: version.kind, version: Number(version.text) })
    }
    return draft
  })
}

const behind: Reason = {
  gate: 'waiting_behind',
  code: 'behind',
  detail: 'an earlier delivery of this agent and ordering key waits',
  rule: null,
  limit: null,
  used: null,
  windowStartMs: null,
}

const older: Reason = {
  ...behind,
  gate: 'version',
  code: 'older',
  detail: 'a newer version of this object was let through to this agent before',
}

const versionKey = (agent: string, orderingKey: string): string => `${agent}\n${orderingKey}`

/** Of what was stored, and of what this call lets through. */
function isOlder(tables: Tables, fresh: ReadonlyMap<string, VersionRow>, { request, verdict }: Draft): boolean {
  const { agent, version, item } = request.proposal.case
  if (version === null || (verdict !== 'allow' && verdict !== 'defer')) return false
  const key = versionKey(agent, item.event.orderingKey)
  const last = fresh.get(key) ?? tables.versions.get(key)
  return last !== undefined && last.kind === version.kind && Number(version.text) < last.version
}

/** All ceilings are charged, or none. */
function askCeilings(draft: Draft, used: Map<string, number>): void {
  const { ceilings, case: subject } = draft.request.proposal
  const usedOf = (ask: CeilingAsk): number => used.get(budgetKey(ask.budget, ask.windowStartMs)) ?? 0
  const full = ceilings.filter(ask => usedOf(ask) + 1 > ask.limit)
  if (full.length > 0) {
    const isDenied = full.some(ask => ask.onExhaust === 'deny')
    const ends = full.flatMap(({ windowEndMs }) => (windowEndMs === null ? [] : [windowEndMs]))
    draft.verdict = isDenied ? 'deny' : 'defer'
    draft.notBeforeMs = isDenied || ends.length === 0 ? null : Math.max(...ends)
    draft.reasons = [...full.map(ask => exhausted(ask, usedOf(ask))), ...draft.reasons]
    return
  }
  draft.charges = ceilings.map(({ budget, windowStartMs, limit }) => ({
    chargeId: subject.decisionId,
    budget,
    windowStartMs,
    amount: 1,
    limit,
  }))
  for (const ask of ceilings) used.set(budgetKey(ask.budget, ask.windowStartMs), usedOf(ask) + 1)
}

function exhausted({ limit, rule, windowStartMs }: CeilingAsk, used: number): Reason {
  const detail = `${used} of ${limit} are used of ${rule}`
  return { gate: 'ceiling', code: 'exhausted', detail, rule, limit, used, windowStartMs }
}

function verdictOf(draft: Draft, batch: StageBatch, { atMs, configVersion }: ClaimTime): StoredVerdict {
  const { decisionId, attempt, agent, agents, item } = draft.request.proposal.case
  const { verdict, reasons, charges, notBeforeMs } = draft
  return {
    decisionId,
    attempt,
    agent,
    agents,
    logId: batch.logId,
    partition: batch.partition,
    offset: item.record.offset,
    verdict,
    reasons,
    charges,
    notBeforeMs,
    atMs,
    configVersion,
    delivery: null,
    override: null,
  }
}

function charge(tables: Tables, { charges, request }: Draft): void {
  const { attempt } = request.proposal.case
  for (const { chargeId, budget, windowStartMs, amount } of charges) {
    const key = `${chargeId}\n${budget}`
    if (tables.charges.has(key)) continue
    tables.charges.set(key, { chargeId, budget, windowStartMs, amount, attempt, voidedAtMs: null })
    use(tables, { budget, windowStartMs }, amount)
  }
}

function letWait(tables: Tables, draft: Draft, partition: number): void {
  const { request, notBeforeMs, reasons } = draft
  const { decisionId, attempt, agent, item } = request.proposal.case
  const rateReserved = reasons.some(({ code }) => code === 'slot_reserved')
  const nextAttempt = attempt + 1
  const known = tables.waiting.get(decisionId)
  if (known !== undefined) {
    if (known.nextAttempt < nextAttempt)
      tables.waiting.set(decisionId, { ...known, notBeforeMs, rateReserved, nextAttempt })
    return
  }
  if (!request.keepsEvent) throw new Error(`decision ${decisionId} is to wait without its bytes`)
  tables.waiting.set(decisionId, {
    decisionId,
    agent,
    orderingKey: item.event.orderingKey,
    tenant: item.event.tenant,
    partition,
    logId: item.origin.logId,
    offset: item.origin.offset,
    event: item.eventBytes,
    notBeforeMs,
    rateReserved,
    nextAttempt,
    releasedAttempt: 0,
    releasedAtMs: null,
    endedAttempt: null,
    eventKey: item.event.eventKey,
    cause: 'due',
  })
}

function end(tables: Tables, { request }: Draft): void {
  const { decisionId, attempt } = request.proposal.case
  const row = tables.waiting.get(decisionId)
  if (row !== undefined) tables.waiting.set(decisionId, { ...row, endedAttempt: attempt })
}

/** Moves the guard of versions and opens the delivery, when its agent reports. */
function deliver(tables: Tables, { request }: Draft, partition: number, { atMs }: ClaimTime): void {
  const { decisionId, attempt, agent, item, version, terms } = request.proposal.case
  const { tenant, orderingKey, eventKey } = item.event
  if (version !== null) {
    tables.versions.set(versionKey(agent, orderingKey), { kind: version.kind, version: Number(version.text) })
  }
  if (terms === null) return
  const known = tables.deliveries.get(decisionId)
  if (known !== undefined) {
    if (known.attempt >= attempt || known.state !== 'waiting') return
    tables.deliveries.set(decisionId, {
      ...known,
      attempt,
      deliveries: known.deliveries + 1,
      state: 'in_progress',
      overdueAtMs: atMs + known.deadlineMs,
      overdueProducedAtMs: null,
    })
    return
  }
  const { maxAttempts, backoffMs, deadlineMs } = terms
  tables.deliveries.set(decisionId, {
    decisionId,
    agent,
    tenant,
    orderingKey,
    eventKey,
    state: 'in_progress',
    attempt,
    deliveries: 1,
    parkedCode: null,
    maxAttempts,
    backoffMs,
    deadlineMs,
    event: item.eventBytes,
    origin: { logId: item.origin.logId, partition, offset: item.origin.offset },
    overdueAtMs: atMs + deadlineMs,
    overdueProducedAtMs: null,
    ended: null,
  })
}

function endDelivery(tables: Tables, { request, verdict }: Draft, batch: StageBatch): void {
  const { decisionId, item } = request.proposal.case
  const known = tables.deliveries.get(decisionId)
  if (known?.state !== 'waiting' || (verdict !== 'deny' && verdict !== 'stale')) return
  const ended = { logId: batch.logId, offset: item.record.offset }
  tables.deliveries.set(decisionId, { ...known, state: verdict, ended })
}
