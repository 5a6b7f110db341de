import type { ClaimContext, StageBatch } from '@weir/core'
import { positionArrays, type SqlValue } from '@weir/postgres'
import type { CeilingAsk } from '../domain/budgets.ts'
import type { ClaimRequest } from '../ports.ts'

/** The parameters of policy.claim, in its order. */
export function claimParameters(
  batch: StageBatch,
  { ownership, committed }: ClaimContext,
  requests: readonly ClaimRequest[],
  at: { readonly atMs: number; readonly configVersion: string },
): SqlValue[] {
  const { partition, epoch } = ownership
  return [
    partition,
    epoch,
    ...positionArrays(committed),
    batch.logId,
    at.atMs,
    at.configVersion,
    ...proposalArrays(requests),
    ...askArrays(requests),
    ...deliveryArrays(requests),
  ]
}

function proposalArrays(requests: readonly ClaimRequest[]): SqlValue[] {
  const proposals = requests.map(({ proposal }) => proposal)
  const cases = proposals.map(proposal => proposal.case)
  return [
    cases.map(({ item }) => item.record.offset),
    cases.map(({ decisionId }) => decisionId),
    cases.map(({ attempt }) => attempt),
    cases.map(({ agent }) => agent),
    cases.map(({ agents }) => JSON.stringify(agents)),
    proposals.map(({ verdict }) => verdict),
    proposals.map(({ reasons }) => JSON.stringify(reasons)),
    proposals.map(({ notBeforeMs }) => notBeforeMs),
    requests.map(({ group }) => group),
    cases.map(({ item }) => item.event.tenant),
    cases.map(({ item }) => item.event.orderingKey),
    cases.map(({ item }) => item.origin.logId),
    cases.map(({ item }) => item.origin.offset),
    requests.map(({ proposal, keepsEvent }) => (keepsEvent ? proposal.case.item.eventBytes : null)),
  ]
}

/** What the ledger keeps of a delivery beside its verdict. */
function deliveryArrays(requests: readonly ClaimRequest[]): SqlValue[] {
  const cases = requests.map(({ proposal }) => proposal.case)
  return [
    cases.map(({ item }) => item.event.eventKey),
    cases.map(({ version }) => version?.kind ?? null),
    cases.map(({ version }) => version?.text ?? null),
    cases.map(({ terms }) => terms?.maxAttempts ?? null),
    cases.map(({ terms }) => terms?.backoffMs ?? null),
    cases.map(({ terms }) => terms?.deadlineMs ?? null),
  ]
}

/** Each budget once, and what is asked of it, in the order of the proposals. */
function askArrays(requests: readonly ClaimRequest[]): SqlValue[] {
  const budgets = new Map<string, { readonly place: number; readonly ask: CeilingAsk }>()
  const asks = requests.flatMap(({ proposal }, i) =>
    proposal.ceilings.map(ask => {
      const key = `${ask.windowStartMs}/${ask.budget}`
      const budget = budgets.get(key) ?? { place: budgets.size + 1, ask }
      budgets.set(key, budget)
      return { entry: i + 1, place: budget.place, ask }
    }),
  )
  const distinct = [...budgets.values()]
  return [
    distinct.map(({ ask }) => ask.budget),
    distinct.map(({ ask }) => ask.windowStartMs),
    asks.map(({ entry }) => entry),
    asks.map(({ place }) => place),
    asks.map(({ ask }) => ask.rule),
    asks.map(({ ask }) => ask.limit),
    asks.map(({ ask }) => ask.onExhaust),
    asks.map(({ ask }) => ask.windowEndMs),
  ]
}
