import type { RouteConfiguration } from '@weir/core'
import { takes, type Routed } from './routing.ts'

/** What holds for a delivery to an agent that reports; stored with it, so that a change of the configuration changes no open one. */
export interface DeliveryTerms {
  /** How often it is delivered at most. */
  readonly maxAttempts: number
  /** Wait before the second delivery, milliseconds; doubles each time. */
  readonly backoffMs: number
  /** Time the agent has to report, milliseconds. */
  readonly deadlineMs: number
}

export interface TermRules {
  readonly routes: readonly RouteConfiguration[]
  /** Agents with `outcomes: required`. */
  readonly reportingAgents: ReadonlySet<string>
}

/** For a delivery whose route, or whose agent's duty to report, is gone since it began. */
export const defaultTerms: DeliveryTerms = { maxAttempts: 5, backoffMs: 10_000, deadlineMs: 900_000 }

/** Terms of the first route that takes the event to the agent; null when the agent does not report. */
export function termsOf({ routes, reportingAgents }: TermRules, event: Routed, agent: string): DeliveryTerms | null {
  if (!reportingAgents.has(agent)) return null
  const route = routes.find(each => each.agents.includes(agent) && takes(each, event))
  if (route === undefined) return defaultTerms
  const { maxAttempts, backoffSeconds, deadlineSeconds } = route
  return { maxAttempts, backoffMs: backoffSeconds * 1_000, deadlineMs: deadlineSeconds * 1_000 }
}
