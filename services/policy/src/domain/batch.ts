import { decisionId } from '@weir/core'
import type { ClaimRequest, GroupQuestion, StoredVerdict, WaitingPlace } from '../ports.ts'
import { groupOf, type Case, type Item } from './case.ts'
import type { Proposal } from './judge.ts'
import { routedAgents } from './routing.ts'
import { defaultTerms, termsOf, type TermRules } from './terms.ts'
import { comparedVersion } from './version.ts'

/** The deliveries an item stands for: one per routed agent, one without an agent when there is none, or the one that is released. */
export function casesOf(item: Item, rules: TermRules): Case[] {
  const { event, admissionId, release } = item
  const version = event.version === null ? null : comparedVersion(event.version)
  if (release !== null) {
    const { agent, decisionId: id, attempt, rateReserved, isAgain } = release
    // An open delivery goes on as it began, also when its agent need not report any more.
    const terms = termsOf(rules, event, agent) ?? (isAgain ? defaultTerms : null)
    return [{ item, agent, agents: [agent], decisionId: id, attempt, rateReserved, isAgain, version, terms }]
  }
  const routed = routedAgents(rules.routes, event)
  const agents = routed.length === 0 ? [''] : routed
  return agents.map(agent => {
    const id = decisionId(event.eventKey, admissionId, agent, 'policy')
    const terms = termsOf(rules, event, agent)
    return {
      item,
      agent,
      agents: routed,
      decisionId: id,
      attempt: 0,
      rateReserved: false,
      isAgain: false,
      version,
      terms,
    }
  })
}

/** Which waiting deliveries could hold up these. One more than the batch has of a group: then one that is not in the batch shows. */
export function questionsOf(cases: readonly Case[]): GroupQuestion[] {
  const questions = new Map<string, GroupQuestion>()
  for (const { agent, item } of cases) {
    if (agent === '') continue
    const { orderingKey } = item.event
    const { logId, offset } = item.origin
    const key = `${groupOf(agent, orderingKey)}\u0000${logId}`
    const known = questions.get(key)
    const belowOffset = Math.max(offset, known?.belowOffset ?? 0)
    const limit = item.release === null ? (known?.limit ?? 1) : (known?.limit ?? 1) + 1
    questions.set(key, { agent, orderingKey, logId, belowOffset, limit })
  }
  return [...questions.values()]
}

/**
 * The deliveries of a batch that wait behind one of a smaller offset. A release earlier in the batch that is not held up itself holds
 * up nobody: should the limiter or the ledger defer it, they also hold back what comes after it. What already has a verdict is not
 * asked again; it lets pass only when that verdict ended it.
 */
export function heldUp(
  cases: readonly Case[],
  waiting: readonly WaitingPlace[],
  stored: readonly StoredVerdict[],
): ReadonlySet<Case> {
  const places = new Map<string, WaitingPlace[]>()
  for (const place of waiting) {
    const group = groupOf(place.agent, place.orderingKey)
    places.set(group, [...(places.get(group) ?? []), place])
  }
  const verdicts = new Map(stored.map(row => [attemptKey(row), row.verdict]))
  const passing = new Set<string>()
  const held = new Set<Case>()
  for (const subject of cases) {
    const { agent, item, decisionId: id } = subject
    const known = verdicts.get(attemptKey(subject))
    if (known !== undefined) {
      if (known !== 'defer') passing.add(id)
      continue
    }
    const before = places.get(groupOf(agent, item.event.orderingKey)) ?? []
    const blocks = (place: WaitingPlace): boolean =>
      place.logId === item.origin.logId && place.offset < item.origin.offset && !passing.has(place.decisionId)
    if (before.some(blocks)) held.add(subject)
    else passing.add(id)
  }
  return held
}

export function attemptKey(of: { readonly decisionId: string; readonly attempt: number }): string {
  return `${of.decisionId}:${of.attempt}`
}

/** Adds to each proposal what the ledger needs to keep order inside the batch. */
export function claimRequests(proposals: readonly Proposal[]): ClaimRequest[] {
  const groups = new Map<string, { readonly number: number; mayWait: boolean }>()
  return proposals.map(proposal => {
    const { agent, item } = proposal.case
    const key = groupOf(agent, item.event.orderingKey)
    const group = groups.get(key) ?? { number: groups.size + 1, mayWait: false }
    groups.set(key, group)
    const isDeferrable = proposal.verdict === 'defer' || proposal.ceilings.some(ask => ask.onExhaust === 'defer')
    group.mayWait ||= isDeferrable
    // A delivery whose agent reports may have to go out again.
    return { proposal, group: group.number, keepsEvent: group.mayWait || proposal.case.terms !== null }
  })
}
