import { fenced, type LogPosition, type OutRecord, type Ownership } from '@weir/core'
import { takeFairly } from '../domain/fair-share.ts'
import {
  dueDeliveries,
  maxRun,
  nextDueMs,
  releaseOf,
  releaseRecord,
  runLimit,
  type Candidate,
} from '../domain/release.ts'
import { policyDefaults, type PolicyOptions } from './policy-options.ts'

/** Longest time without a look while something waits, milliseconds. */
const maxPauseMs = 1_000

/** Lets waiting deliveries re-enter when they are due, in order, in turns between tenants. One per partition number. */
export class Releaser {
  readonly #options: PolicyOptions
  readonly #deficits = new Map<string, number>()
  /** False when it is known that nothing waits: then a tick costs nothing. */
  #mayWait = true
  /** Nothing is due before; by this process' clock. */
  #nothingBeforeMs = 0
  /** When that was found: a clock that was set back since says nothing. */
  #lookedAtMs = 0
  /** Looking costs time that claims need: it takes at most a fifth of it. */
  #restUntilMs = 0

  constructor(options: PolicyOptions) {
    this.#options = options
  }

  /** A delivery was deferred, or one ended and those behind it may leave: the next tick has to look. */
  wake(): void {
    this.#mayWait = true
    this.#nothingBeforeMs = 0
  }

  async tick(ownership: Ownership, committed: readonly LogPosition[]): Promise<void> {
    const { ledger, metrics, clock, faultPoint } = this.#options
    const startedAtMs = clock.nowMs()
    const isEarly = startedAtMs < Math.max(this.#nothingBeforeMs, this.#restUntilMs)
    if (!this.#mayWait || (isEarly && startedAtMs >= this.#lookedAtMs)) return
    const look = await ledger.candidates(ownership, committed, maxRun)
    const endedAtMs = clock.nowMs()
    this.#lookedAtMs = endedAtMs
    this.#restUntilMs = endedAtMs + Math.min((endedAtMs - startedAtMs) * 4, maxPauseMs)
    metrics.waiting(ownership.partition, look.depth, Math.max(0, look.nowMs - (look.oldestDueMs ?? look.nowMs)))
    this.#mayWait = look.depth > 0
    const chosen = this.#choose(look.candidates, look.nowMs)
    if (chosen.length === 0) {
      this.#nothingBeforeMs = endedAtMs + Math.min(this.#msUntilDue(look.candidates, look.nowMs), maxPauseMs)
      return
    }
    const { records, released } = await this.#records(ownership, chosen, look.nowMs)
    if (records.length === 0) return
    await this.#options.publisher.publish(records)
    faultPoint('policy.after-release-produced')
    metrics.released(records.length)
    if (!(await ledger.markReleased(ownership, released))) throw fenced(ownership)
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

  #msUntilDue(candidates: readonly Candidate[], nowMs: number): number {
    const { claimTimeoutMs = policyDefaults.claimTimeoutMs } = this.#options
    return Math.max(0, (nextDueMs(candidates, claimTimeoutMs) ?? Number.MAX_SAFE_INTEGER) - nowMs)
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
