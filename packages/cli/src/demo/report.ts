import type { Decision } from '@weir/schemas'
import { balance, type Balance, type Book } from './ledger.ts'
import type { Observer } from './observe.ts'
import type { Scenario } from './scenario.ts'
import type { Sender } from './client.ts'

export interface Result {
  readonly ok: boolean
  readonly sent: number
  readonly rejected: {
    readonly bad_signature: number
    readonly malformed: number
    readonly too_large: number
    readonly unknown_source: number
  }
  readonly unique: number
  readonly duplicates: number
  readonly delivered: number
  readonly deliveredPerAgent: Readonly<Record<string, number>>
  readonly deferred: number
  readonly denied: number
  readonly parked: number
  readonly auditMessages: number
  readonly lost: number
  readonly doubled: number
  readonly whyMs: number
  readonly wallSeconds: number
}

export interface Measured {
  readonly sender: Sender
  readonly scenario: Scenario
  readonly observer: Observer
  readonly auditMessages: number
  /** How many sentences each question was answered with. */
  readonly sentences: readonly number[]
  readonly whyMs: number
  readonly wallSeconds: number
}

/** Whether everything that must have happened has happened: what the demo waits for. */
export function isComplete(scenario: Scenario, observer: Observer): boolean {
  const { lost } = balance(scenario, observer.delivered)
  return (
    lost.length === 0 &&
    answered(observer.decisions) >= scenario.accepted &&
    denied(observer.decisions) >= expectedDenied(scenario)
  )
}

/** The numbers, and a line for everything that does not balance. */
export function resultOf(measured: Measured): { readonly result: Result; readonly faults: readonly string[] } {
  const { sender, scenario, observer, auditMessages } = measured
  const book: Book = scenario
  const found = balance(book, observer.delivered)
  const unique = ofDedup(observer.decisions).filter(decision => decision.verdict === 'admitted').length
  const duplicates = answered(observer.decisions) - unique
  const faults = [...faultsOf(found), ...sums(measured, unique)]
  const result: Result = {
    ok: faults.length === 0,
    sent: sender.sent,
    rejected: {
      bad_signature: sender.answered('bad_signature'),
      malformed: sender.answered('malformed'),
      too_large: sender.answered('too_large'),
      unknown_source: sender.answered('unknown_source'),
    },
    unique,
    duplicates: duplicates + sender.answered('duplicate_event_key'),
    delivered: observer.delivered.length,
    deliveredPerAgent: perAgent(observer),
    deferred: new Set(verdicts(observer.decisions, 'defer').map(decision => decision.decisionId)).size,
    denied: denied(observer.decisions),
    parked: observer.parked,
    auditMessages,
    lost: found.lost.length,
    doubled: found.doubled.length,
    whyMs: measured.whyMs,
    wallSeconds: measured.wallSeconds,
  }
  return { result, faults }
}

function faultsOf(found: Balance): string[] {
  return [
    ...found.lost.map(text => `lost: ${text}`),
    ...found.doubled.map(text => `doubled: ${text}`),
    ...found.unexpected.map(text => `unexpected: ${text}`),
    ...found.reordered.map(text => `out of order: ${text}`),
  ]
}

function sums({ sender, scenario, observer, auditMessages, sentences }: Measured, unique: number): string[] {
  const faults: string[] = []
  const same = (what: string, is: number, shouldBe: number): void => {
    if (is !== shouldBe) faults.push(`${what}: ${is}, but it should be ${shouldBe}`)
  }
  const businessPairs = scenario.choices.filter(choice => choice.exactly === 1).length
  same('events let through', unique, scenario.expected.length - businessPairs)
  same('deliveries decided by dedup', answered(observer.decisions), scenario.accepted)
  same('deliveries denied', denied(observer.decisions), expectedDenied(scenario))
  same('messages in the audit store', auditMessages, observer.messages)
  for (const [code, times] of Object.entries(scenario.refused))
    same(`requests answered ${code}`, sender.answered(code), times)
  const refused = Object.values(scenario.refused).reduce((sum, times) => sum + times, 0)
  same(
    'requests answered',
    sender.answered('ok') + refused + sender.answered('temporarily_unavailable'),
    sender.sent - scenario.unanswered,
  )
  const otherRules = deniedReasons(observer).filter(reason => !reason.includes('run-steps'))
  if (otherRules.length > 0)
    faults.push(`denied for another reason than the ceiling of the run: ${otherRules.join('; ')}`)
  if (sentences.some(count => count === 0)) faults.push('a question to the audit store was answered with no sentence')
  if (verdicts(observer.decisions, 'defer').length === 0)
    faults.push('nothing was deferred, although a tenant exceeded its rate')
  return faults
}

/** Deliveries that dedup has answered, repeats counted. */
function answered(decisions: readonly Decision[]): number {
  return ofDedup(decisions).reduce((sum, decision) => sum + decision.copies, 0)
}

function ofDedup(decisions: readonly Decision[]): Decision[] {
  return decisions.filter(decision => decision.stage === 'dedup')
}

function verdicts(decisions: readonly Decision[], verdict: string): Decision[] {
  return decisions.filter(decision => decision.stage === 'policy' && decision.verdict === verdict)
}

function denied(decisions: readonly Decision[]): number {
  return verdicts(decisions, 'deny').length
}

function expectedDenied(scenario: Scenario): number {
  const run = scenario.choices.find(choice => choice.exactly > 1)
  return run === undefined ? 0 : run.keys.length - run.exactly
}

/** Each reason that was given for a denial, once. */
export function deniedReasons(observer: Observer): string[] {
  const reasons = verdicts(observer.decisions, 'deny').map(({ reasons: [reason] }) => {
    return reason === undefined ? 'no reason' : `${reason.rule ?? reason.code}: ${reason.detail}`
  })
  return [...new Set(reasons)]
}

function perAgent(observer: Observer): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { agent } of observer.delivered) counts[agent] = (counts[agent] ?? 0) + 1
  return counts
}

export function tableOf(result: Result): string {
  const rejected = Object.entries(result.rejected).map(([reason, n]): [string, number] => [
    `rejected: ${reason.replace('_', ' ')}`,
    n,
  ])
  const agents = Object.entries(result.deliveredPerAgent).map(([agent, n]): [string, number] => [`  to ${agent}`, n])
  const rows: [string, number][] = [
    ['sent', result.sent],
    ...rejected,
    ['unique', result.unique],
    ['duplicates', result.duplicates],
    ['delivered', result.delivered],
    ...agents,
    ['deferred', result.deferred],
    ['denied', result.denied],
    ['parked', result.parked],
    ['audit rows', result.auditMessages],
    ['lost', result.lost],
    ['doubled', result.doubled],
  ]
  return rows.map(([name, n]) => `  ${name.padEnd(26)}${String(n).padStart(6)}`).join('\n')
}
