import { WeirError, type LogPosition, type OutRecord, type Ownership } from '@weir/core'
import { takeFairly } from '../domain/fair-share.ts'
import { dueDeliveries, maxRun, releaseOf, releaseRecord, runLimit, type Candidate } from '../domain/release.ts'
import { policyDefaults, type PolicyOptions } from './policy-options.ts'

/** Lets waiting deliveries re-enter when they are due, in order, in turns between tenants. One per partition number. */
export class Releaser {
  readonly #options: PolicyOptions
  readonly #deficits = new Map<string, number>()
  /** False when it is known that nothing waits: then a tick costs nothing. */
  #mayWait = true

  constructor(options: PolicyOptions) {
    this.#options = options
  }

  /** A delivery was deferred: the next tick has to look. */
  wake(): void {
    this.#mayWait = true
  }

  async tick(ownership: Ownership, committed: readonly LogPosition[]): Promise<void> {
    if (!this.#mayWait) return
    const { ledger, metrics, faultPoint } = this.#options
    const look = await ledger.candidates(ownership, committed, maxRun)
    metrics.waiting(ownership.partition, look.depth, Math.max(0, look.nowMs - (look.oldestDueMs ?? look.nowMs)))
    this.#mayWait = look.depth > 0
    const chosen = this.#choose(look.candidates, look.nowMs)
    if (chosen.length === 0) return
    const { records, released } = await this.#records(ownership, chosen, look.nowMs)
    if (records.length === 0) return
    await this.#options.publisher.publish(records)
    faultPoint('policy.after-release-produced')
    metrics.released(records.length)
    if (!(await ledger.markReleased(ownership, released))) {
      throw new WeirError('fenced', `another instance owns policy ${ownership.partition} now`)
    }
  }

  #choose(candidates: readonly Candidate[], nowMs: number): Candidate[] {
    const {
      rules,
      claimTimeoutMs = policyDefaults.claimTimeoutMs,
      maxReleases = policyDefaults.maxReleases,
    } = this.#options
    const due = dueDeliveries(candidates, {
      nowMs,
      claimTimeoutMs,
      runLimitOf: tenant => runLimit(rules.budgets, tenant),
    })
    return takeFairly(due, maxReleases, this.#deficits)
  }

  async #records(
    ownership: Ownership,
    chosen: readonly Candidate[],
    nowMs: number,
  ): Promise<{ records: OutRecord[]; released: { decisionId: string; attempt: number }[] }> {
    const { ledger, codec, topics, log } = this.#options
    const ids = chosen.map(({ decisionId }) => decisionId)
    const rows = new Map((await ledger.fetchWaiting(ownership, ids)).map(row => [row.decisionId, row]))
    const records: OutRecord[] = []
    const released: { decisionId: string; attempt: number }[] = []
    for (const { decisionId } of chosen) {
      const waiting = rows.get(decisionId)
      if (waiting === undefined) continue
      const event = await codec.decodeEvent(waiting.event)
      if (event.kind === 'fault') {
        // It was readable when it was deferred; an operator must see why it is not now. Those behind it keep waiting.
        log.error(
          { decisionId, detail: event.detail, partition: ownership.partition },
          'a waiting event is not readable',
        )
        continue
      }
      const release = releaseOf(waiting, event.value, nowMs)
      records.push(releaseRecord(topics.released, ownership.partition, release, codec.encodeRelease(release)))
      released.push({ decisionId, attempt: waiting.attempt })
    }
    return { records, released }
  }
}
