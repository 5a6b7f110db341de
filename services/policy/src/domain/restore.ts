import type { Coordinate } from '@weir/core'
import type { Decision } from '@weir/schemas'
import { holdsRateSlot } from './case.ts'

/** A verdict that was emitted, with what it wrote. */
interface RestoredVerdict {
  readonly decision: Decision
  /** When it is the last of its delivery and a deferral: the delivery waits. */
  readonly waiting: { readonly origin: Coordinate; readonly event: Buffer; readonly rateReserved: boolean } | null
}

export interface Restoration {
  readonly verdicts: readonly RestoredVerdict[]
  /** Deliveries whose last emitted verdict ended their wait, and its attempt. */
  readonly ended: readonly { readonly decisionId: string; readonly attempt: number }[]
  /** Deliveries that were allowed and that the agent's topic refused then. */
  readonly parked: readonly Decision[]
}

/** Gate named by the decision of a delivery that its agent's topic refused. */
export const topicGate = 'agent_topic'

/** The rows that policy's own decisions tell of. Decisions without a delivery (unreadable records) left no rows. */
export function restorationOf(decisions: readonly Decision[]): Restoration {
  const mine = decisions.filter(
    decision => decision.stage === 'policy' && decision.tenant !== '' && decision.report === null,
  )
  const last = new Map<string, number>()
  for (const { decisionId, attempt } of mine) last.set(decisionId, Math.max(attempt, last.get(decisionId) ?? 0))
  const verdicts = mine.map(decision => ({
    decision,
    waiting: decision.attempt === last.get(decision.decisionId) ? waitingOf(decision) : null,
  }))
  const ended = mine.filter(
    ({ decisionId, attempt, verdict }) => attempt === last.get(decisionId) && verdict !== 'defer',
  )
  return {
    verdicts,
    ended: ended.map(({ decisionId, attempt }) => ({ decisionId, attempt })),
    parked: mine.filter(({ verdict, reasons }) => verdict === 'parked' && reasons[0]?.gate === topicGate),
  }
}

function waitingOf(decision: Decision): RestoredVerdict['waiting'] {
  if (decision.verdict !== 'defer' || decision.waitingEvent === null) return null
  const origin = decision.original ?? decision.input
  return { origin, event: decision.waitingEvent, rateReserved: holdsRateSlot(decision.reasons) }
}
