import type { Outcome, RawEvent } from '@weir/schemas'

/** Which delivery, and what is said about it. */
export interface Said {
  readonly decisionId: string
  readonly attempt: number
  readonly agent: string
  readonly status: 'completed' | 'failed' | 'no_report'
  readonly effects: '' | 'none' | 'unknown' | 'done'
  /** One sentence of the agent, at most 2 KiB. */
  readonly detail: string | null
  readonly atMs: number
}

/** What is known of the event of a delivery; all of it while the delivery is open. */
export type EventFields = Pick<RawEvent, 'tenant' | 'eventKey' | 'eventKeyText' | 'orderingKey'> &
  Partial<Pick<RawEvent, 'run' | 'rootEvent' | 'cause' | 'traceparent'>>

export function outcomeRecord(said: Said, event: EventFields): Outcome {
  const { decisionId, attempt, agent, status, effects, detail, atMs: reportedAtMs } = said
  const { tenant, eventKey, eventKeyText, orderingKey } = event
  const { run = null, rootEvent = null, cause = null, traceparent = null } = event
  return {
    decisionId,
    attempt,
    tenant,
    agent,
    eventKey,
    eventKeyText,
    orderingKey,
    status,
    effects,
    detail,
    run,
    rootEvent,
    cause,
    reportedAtMs,
    traceparent,
  }
}
