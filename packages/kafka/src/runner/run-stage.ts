import type { Assignment, Membership } from '@weir/core'
import { PartitionOwner } from './partition-owner.ts'
import { alarm } from './take-over.ts'
import { stageDefaults, type StageOptions } from './stage-options.ts'

export interface RunningStage {
  /** Gives up all numbers after the batch in hand, then leaves the group. May be called twice. */
  stop(): Promise<void>
  /**
   * Call when a connection to the claims' store was lost: it may come back older (restored, failed over), and only a take-over
   * compares it with what was emitted. Every number takes over again before its next batch.
   */
  storeLost(reason: string): void
  /** Why the stage is not ready (no assignment yet, or a number that does not work), or null. */
  ready(): string | null
  /** Why the process should be restarted, or null. */
  live(): string | null
}

/**
 * Joins the group and works on every partition number it is given: read, claim, emit. Numbers kept over a rebalance go on without a
 * pause. Throws `broker_unavailable` when the group cannot be joined at all.
 */
export async function runStage(options: StageOptions): Promise<RunningStage> {
  const stage = new Stage(options)
  await stage.join()
  return stage
}

class Stage implements RunningStage {
  readonly #options: StageOptions
  readonly #owners = new Map<number, PartitionOwner>()
  /** Loops given up that may still have a batch in hand; the same number starts again only after them. */
  readonly #ending = new Map<number, Promise<void>>()
  #membership: Promise<Membership> | null = null
  #assigned = false
  #generation = -1
  #lost: unknown = null
  #stopping: Promise<void> | null = null

  constructor(options: StageOptions) {
    this.#options = options
  }

  async join(): Promise<void> {
    const { broker, group, inputs, sessionTimeoutMs } = this.#options
    this.#membership = broker.join({
      group,
      topics: inputs,
      onAssigned: assignment => this.#assign(assignment),
      onLost: cause => {
        this.#lost = cause
        this.#options.log.error({ err: cause, group }, 'this instance has lost its place in the group for good')
      },
      ...(sessionTimeoutMs === undefined ? {} : { sessionTimeoutMs }),
    })
    await this.#membership
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#end()
    return this.#stopping
  }

  storeLost(reason: string): void {
    for (const owner of this.#owners.values()) owner.retake(reason)
  }

  ready(): string | null {
    if (this.#stopping !== null) return 'stopping'
    if (!this.#assigned) return 'waiting for the first assignment'
    for (const owner of this.#owners.values()) {
      if (owner.halted !== null) return owner.halted
      if (!owner.working) return `taking over partition ${owner.partition}`
    }
    return null
  }

  live(): string | null {
    if (this.#lost !== null) return 'no longer a member of its group'
    const limitMs = this.#options.noProgressMs ?? stageDefaults.noProgressMs
    const nowMs = this.#options.clock.nowMs()
    for (const owner of this.#owners.values()) {
      if (owner.halted === null && owner.stuckMs(nowMs) > limitMs) {
        return `partition ${owner.partition} has not moved for ${limitMs} ms`
      }
    }
    return null
  }

  #assign({ numbers, generation }: Assignment): void {
    if (this.#stopping !== null) return
    // No new generation gave the numbers away: the session ran out, so they were taken.
    if (numbers.length === 0 && generation === this.#generation) {
      for (const number of this.#owners.keys()) alarm(this.#options, 'session_lost', number, { generation })
    }
    this.#generation = generation
    this.#assigned = true
    const wanted = new Set(numbers)
    for (const number of this.#owners.keys()) if (!wanted.has(number)) this.#giveUp(number)
    for (const number of wanted) {
      if (this.#owners.has(number)) continue
      const after = this.#ending.get(number) ?? Promise.resolve()
      this.#owners.set(number, new PartitionOwner(this.#options, number, () => this.#member(), after))
    }
  }

  #giveUp(number: number): void {
    const owner = this.#owners.get(number)
    if (owner === undefined) return
    this.#owners.delete(number)
    const ending = owner.stop()
    this.#ending.set(number, ending)
    void ending.then(() => {
      if (this.#ending.get(number) === ending) this.#ending.delete(number)
    })
  }

  #member(): Promise<Membership> {
    return this.#membership ?? Promise.reject(new Error('the stage has not joined its group'))
  }

  async #end(): Promise<void> {
    for (const number of this.#owners.keys()) this.#giveUp(number)
    await Promise.all(this.#ending.values())
    const membership = await this.#membership
    await membership?.leave()
  }
}
