import { fenced, type LogPosition, type Ownership } from '@weir/core'
import { policyDefaults, type PolicyOptions } from './policy-options.ts'

const lookEveryMs = 10_000
const chunk = 2_000

/**
 * Removes rows of events that were judged long ago, by the log-append time of what the partition last committed: a partition that lags
 * keeps what it has yet to compare. One per partition number.
 */
export class Expiry {
  readonly #options: PolicyOptions
  #lookedAtMs = Number.NEGATIVE_INFINITY

  constructor(options: PolicyOptions) {
    this.#options = options
  }

  async tick(ownership: Ownership, committed: readonly LogPosition[]): Promise<void> {
    const { deliveries: ledger, clock, keepMs = policyDefaults.keepMs, metrics } = this.#options
    const nowMs = clock.nowMs()
    if (nowMs >= this.#lookedAtMs && nowMs - this.#lookedAtMs < lookEveryMs) return
    const reachedMs = Math.max(0, ...committed.map(({ claimedAtMs }) => claimedAtMs))
    if (reachedMs <= keepMs) return
    const removed = await ledger.expire(ownership, { beforeMs: reachedMs - keepMs, limit: chunk })
    if (removed === null) throw fenced(ownership)
    metrics.expired(removed)
    // More may be left: the next tick goes on.
    this.#lookedAtMs = removed >= chunk ? Number.NEGATIVE_INFINITY : nowMs
  }
}
