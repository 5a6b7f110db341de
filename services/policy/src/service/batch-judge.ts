import type { ClaimContext, LogRecord, OutRecord, StageBatch } from '@weir/core'
import { attemptKey, casesOf, claimRequests, heldUp, questionsOf } from '../domain/batch.ts'
import { groupOf, type Case, type Item } from '../domain/case.ts'
import type { RateAnswer } from '../domain/gates/gate.ts'
import { judgeCase, type JudgeContext, type Judgement, type Proposal } from '../domain/judge.ts'
import { unreadableOutputs, type OutputContext } from '../domain/records.ts'
import { eventFault, releaseFault } from '../domain/validate.ts'
import type { Decoded, Look, RateRequest, StoredVerdict } from '../ports.ts'
import type { PolicyOptions } from './policy-options.ts'

/** A record with the verdict stored for it. */
export interface Answer {
  readonly item: Item
  readonly row: StoredVerdict
}

export interface JudgedBatch {
  /** In input order. */
  readonly answers: readonly Answer[]
  readonly unreadable: ReadonlyMap<number, readonly OutRecord[]>
  readonly nowMs: number
}

interface Readable {
  readonly items: readonly Item[]
  readonly faults: readonly { readonly record: LogRecord; readonly code: string; readonly detail: string }[]
}

/** Decodes and judges a batch and claims the verdicts. Null when the epoch is no longer mine. */
export async function judgeBatch(
  options: PolicyOptions,
  batch: StageBatch,
  context: ClaimContext,
  output: OutputContext,
): Promise<JudgedBatch | null> {
  const { ledger, metrics, configVersion, faultPoint } = options
  const { items, faults } = await readItems(options, batch)
  const cases = onceEach(items.flatMap(item => casesOf(item, options)))
  const look = await ledger.look(batch, cases, questionsOf(cases))
  const stored = look.stored.filter(row => row.logId === batch.logId && row.partition === batch.partition)
  const isKnown = knownCases(cases, look.stored, stored, metrics)
  const proposals = await propose(options, cases, look, isKnown)
  faultPoint('policy.before-claim')
  const at = { atMs: look.nowMs, configVersion }
  const claimed = await ledger.claim(batch, context, claimRequests(proposals), at)
  if (claimed === null) return null
  const fresh = claimed.flatMap((row, i): Answer[] => {
    const item = proposals[i]?.case.item
    if (item === undefined || !isOf(row, batch, item)) {
      metrics.repeated()
      return []
    }
    countVerdict(options, row)
    return [{ item, row }]
  })
  const unreadable = new Map(
    faults.map(fault => [fault.record.offset, unreadableOutputs(output, fault.record, fault, look.nowMs)]),
  )
  return { answers: inOrder(items, stored, fresh), unreadable, nowMs: look.nowMs }
}

/** Cases that need no verdict: their record has one, or it is a repeat of an attempt that was claimed from another record. */
function knownCases(
  cases: readonly Case[],
  all: readonly StoredVerdict[],
  mine: readonly StoredVerdict[],
  metrics: PolicyOptions['metrics'],
): (subject: Case) => boolean {
  const offsets = new Set(mine.map(row => row.offset))
  const attempts = new Set(all.map(attemptKey))
  const known = new Set<Case>()
  for (const subject of cases) {
    if (offsets.has(subject.item.record.offset)) known.add(subject)
    else if (attempts.has(attemptKey(subject))) {
      known.add(subject)
      metrics.repeated()
    }
  }
  return subject => known.has(subject)
}

async function readItems(options: PolicyOptions, batch: StageBatch): Promise<Readable> {
  const isRelease = batch.topic === options.topics.released
  const items: Item[] = []
  const faults: { record: LogRecord; code: string; detail: string }[] = []
  for (const record of batch.records) {
    const read = isRelease ? await releaseItem(options, record) : await eventItem(options, batch, record)
    if (read.kind === 'ok') items.push(read.value)
    else faults.push({ record, code: read.code, detail: read.detail })
  }
  return { items, faults }
}

async function eventItem({ codec }: PolicyOptions, batch: StageBatch, record: LogRecord): Promise<Decoded<Item>> {
  const pending = codec.decodeEvent(record.value)
  const decoded = pending instanceof Promise ? await pending : pending
  if (decoded.kind === 'fault') return decoded
  const event = decoded.value
  const fault = eventFault(event)
  if (fault !== null) return { kind: 'fault', code: 'invalid_event', detail: fault }
  const origin = { logId: batch.logId, partition: batch.partition, offset: record.offset }
  const eventBytes = record.value ?? Buffer.alloc(0)
  return { kind: 'ok', value: { record, event, eventBytes, admissionId: event.deliveryId, origin, release: null } }
}

async function releaseItem({ codec }: PolicyOptions, record: LogRecord): Promise<Decoded<Item>> {
  const decoded = await codec.decodeRelease(record)
  if (decoded.kind === 'fault') return decoded
  const release = decoded.value
  const inner = await codec.decodeEvent(release.event)
  if (inner.kind === 'fault') return inner
  const fault = releaseFault(release) ?? eventFault(inner.value)
  if (fault !== null) return { kind: 'fault', code: 'invalid_event', detail: fault }
  const { event: eventBytes, admissionId, input: origin } = release
  const released = { ...release, isAgain: release.cause === 'again' }
  return { kind: 'ok', value: { record, event: inner.value, eventBytes, admissionId, origin, release: released } }
}

/** The first record of an attempt stands for it; further ones in the batch are repeats. */
function onceEach(cases: readonly Case[]): Case[] {
  const seen = new Set<string>()
  return cases.filter(subject => {
    const key = attemptKey(subject)
    if (seen.has(key)) return false
    seen.add(key)
    return true
  })
}

/** Pure gates, then one call of the limiter for all that need it, then the gates again with its answers. */
async function propose(
  options: PolicyOptions,
  cases: readonly Case[],
  look: Look,
  isKnown: (subject: Case) => boolean,
): Promise<Proposal[]> {
  const held = heldUp(cases, look.waiting, look.stored)
  const rates = new Map<Case, RateAnswer>()
  const context: JudgeContext = {
    rules: options.rules,
    atMs: look.nowMs,
    isStored: isKnown,
    isBehind: subject => held.has(subject),
    rateOf: subject => rates.get(subject) ?? null,
  }
  const first = cases.map(subject => ({ subject, judgement: judgeCase(subject, context) }))
  const asking = first.flatMap(({ subject, judgement }) =>
    judgement.kind === 'ask_rate' ? [{ subject, request: rateRequest(subject, judgement) }] : [],
  )
  const answers =
    asking.length === 0
      ? []
      : await options.limiter.ask(
          asking.map(({ request }) => request),
          look.nowMs,
        )
  for (const [i, { subject }] of asking.entries()) {
    const answer = answers[i]
    if (answer !== undefined) rates.set(subject, answer)
  }
  return first.flatMap(({ subject, judgement }) => {
    const final = judgement.kind === 'ask_rate' ? judgeCase(subject, context) : judgement
    return final.kind === 'proposed' ? [final.proposal] : []
  })
}

function rateRequest(subject: Case, { scopes }: Extract<Judgement, { kind: 'ask_rate' }>): RateRequest {
  const { tenant, orderingKey } = subject.item.event
  return { id: attemptKey(subject), tenant, group: groupOf(subject.agent, orderingKey), scopes }
}

/** A verdict claimed from another record is not this record's: the record is a repeat. */
function isOf(row: StoredVerdict, batch: StageBatch, item: Item): boolean {
  return row.logId === batch.logId && row.partition === batch.partition && row.offset === item.record.offset
}

function inOrder(items: readonly Item[], stored: readonly StoredVerdict[], fresh: readonly Answer[]): Answer[] {
  const byOffset = new Map(items.map(item => [item.record.offset, item]))
  const known = stored.flatMap((row): Answer[] => {
    const item = byOffset.get(row.offset)
    return item === undefined ? [] : [{ item, row }]
  })
  return [...known, ...fresh].sort((a, b) => a.row.offset - b.row.offset)
}

function countVerdict({ metrics }: PolicyOptions, row: StoredVerdict): void {
  const deciding = row.reasons[0]
  metrics.judged(row.verdict, deciding?.gate ?? '', deciding?.rule ?? '')
}
