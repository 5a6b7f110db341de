import type { Clock, Log, RouteConfiguration, TopicNames } from '@weir/core'
import type { Rules } from '../domain/gates/gate.ts'
import type { PolicyMetrics } from '../metrics.ts'
import type { DeliveryLedger, PolicyCodec, PolicyLedger, RateLimiter, ReleasePublisher } from '../ports.ts'

export interface PolicyOptions {
  readonly topics: TopicNames
  /** Partitions of the flow: the share of them that is owned is the share of a rate while Redis is away. */
  readonly partitions: number
  readonly routes: readonly RouteConfiguration[]
  /** Agents with `outcomes: required`. */
  readonly reportingAgents: ReadonlySet<string>
  readonly rules: Rules
  /** Version of the configuration: stored with every verdict. */
  readonly configVersion: string
  readonly ledger: PolicyLedger
  readonly deliveries: DeliveryLedger
  readonly limiter: RateLimiter
  readonly publisher: ReleasePublisher
  readonly codec: PolicyCodec
  readonly clock: Clock
  readonly log: Log
  readonly metrics: PolicyMetrics
  readonly faultPoint: (name: string) => void
  /** A release or a passed deadline that was not claimed for this long is produced again, milliseconds. Default 10,000. */
  readonly claimTimeoutMs?: number
  /** Deliveries released per tick and partition number at most. Default 500. */
  readonly maxReleases?: number
  /** How long rows of ended deliveries are kept, by log-append time, milliseconds. Default 35 days. */
  readonly keepMs?: number
}

export const policyDefaults = { claimTimeoutMs: 10_000, maxReleases: 500, keepMs: 35 * 86_400_000 } as const
