import { fenced, type Clock, type LogPosition, type OutRecord, type Ownership } from '@weir/core'
import { outcomeRecord } from '../domain/outcome-record.ts'
import type { OverdueDelivery } from '../ports.ts'
import { policyDefaults, type PolicyOptions } from './policy-options.ts'

/** How often deadlines are looked at. They are minutes: a second more is nothing. */
const lookEveryMs = 1_000
const maxAtOnce = 500

/**
 * Says on weir.outcomes that an agent's time to report has passed: produce, then mark. The record is claimed like any report, so that
 * the first of the two decides. One per partition number.
 */
export class DeadlineWatch {
  readonly #options: PolicyOptions
  readonly #clock: Clock
  #lookedAtMs = Number.NEGATIVE_INFINITY

  constructor(options: PolicyOptions) {
    this.#options = options
    this.#clock = options.clock
  }

  async tick(ownership: Ownership, committed: readonly LogPosition[]): Promise<void> {
    const { deliveries: ledger, publisher, reportingAgents, faultPoint, claimTimeoutMs } = this.#options
    const nowMs = this.#clock.nowMs()
    const isEarly = nowMs >= this.#lookedAtMs && nowMs - this.#lookedAtMs < lookEveryMs
    if (reportingAgents.size === 0 || isEarly) return
    this.#lookedAtMs = nowMs
    const againAfterMs = claimTimeoutMs ?? policyDefaults.claimTimeoutMs
    const look = await ledger.overdue(ownership, committed, { limit: maxAtOnce, againAfterMs })
    const records: OutRecord[] = []
    for (const overdue of look.deliveries) records.push(...(await this.#recordOf(ownership, overdue, look.nowMs)))
    if (records.length === 0) return
    await publisher.publish(records)
    faultPoint('policy.after-deadline-produced')
    if (!(await ledger.markOverdue(ownership, look.deliveries))) throw fenced(ownership)
  }

  async #recordOf({ partition }: Ownership, overdue: OverdueDelivery, nowMs: number): Promise<OutRecord[]> {
    const { codec, topics, log } = this.#options
    const { decisionId } = overdue
    const event = await codec.decodeEvent(overdue.event)
    if (event.kind === 'fault') {
      log.error({ decisionId, detail: event.detail, partition }, 'an event in progress is not readable')
      return []
    }
    const { attempt, agent } = overdue
    const said = { decisionId, attempt, agent, status: 'no_report', effects: '', detail: null, atMs: nowMs } as const
    const value = codec.encodeOutcome(outcomeRecord(said, event.value))
    return [
      { topic: topics.outcomes, partition, key: Buffer.from(event.value.orderingKey, 'utf8'), value, headers: [] },
    ]
  }
}
