// Faults a test makes happen, each at a named point.
import type { Refusal } from '../adapter/record-check.ts'

/** Points of a transaction and of a publish where it can be held or struck. */
export type FaultPoint = 'append' | 'offsets' | 'commit' | 'publish'

/**
 * `lost-answer`: done, but the caller does not hear of it. `lost-request`: not done, and the caller does not hear either.
 */
export type Strike = 'lost-answer' | 'lost-request'

export interface Hold {
  /** Resolves when somebody stands at the point. */
  readonly reached: Promise<void>
  /** Lets it go on, as if it had been frozen. */
  readonly release: () => void
}

interface Held {
  readonly at: FaultPoint
  readonly who: string
  readonly arrive: () => void
  readonly gone: Promise<void>
}

export class Faults {
  readonly #strikes: { readonly at: FaultPoint; readonly strike: Strike; readonly who: string | null }[] = []
  readonly #held = new Set<Held>()
  readonly #refused = new Map<string, Refusal['code']>()
  #isDown = false
  #cuts = 0

  /** The next time somebody (or this transactional id) passes the point, this happens. */
  strikeNext(at: FaultPoint, strike: Strike, who: string | null = null): void {
    this.#strikes.push({ at, strike, who })
  }

  /** Freezes this transactional id before the point, until released. */
  hold(who: string, at: FaultPoint): Hold {
    const { promise: reached, resolve: arrive } = Promise.withResolvers<void>()
    const { promise: gone, resolve: release } = Promise.withResolvers<void>()
    const held = { at, who, arrive, gone }
    this.#held.add(held)
    return {
      reached,
      release: () => {
        this.#held.delete(held)
        release()
      },
    }
  }

  /** From now on (null: no longer) this topic refuses records for good. */
  refuse(topic: string, code: Refusal['code'] | null): void {
    if (code === null) this.#refused.delete(topic)
    else this.#refused.set(topic, code)
  }

  /** The next append of several batches answers for its first batch alone, and nothing else is appended. */
  cutNextAppend(): void {
    this.#cuts++
  }

  /** For the simulator: how many batches of this append are done. */
  cut(batches: number): number {
    if (this.#cuts === 0 || batches < 2) return batches
    this.#cuts--
    return 1
  }

  /** While the cluster is down, every call fails with `broker_unavailable`. */
  setDown(isDown: boolean): void {
    this.#isDown = isDown
  }

  get isDown(): boolean {
    return this.#isDown
  }

  refusalOf(topic: string): Refusal['code'] | null {
    return this.#refused.get(topic) ?? null
  }

  /** For the simulator: waits while held, then tells what strikes here. */
  async pass(at: FaultPoint, who: string): Promise<Strike | null> {
    for (const held of this.#held) {
      if (held.at !== at || held.who !== who) continue
      held.arrive()
      await held.gone
    }
    if (this.#isDown) return 'lost-request'
    const found = this.#strikes.findIndex(strike => strike.at === at && (strike.who === null || strike.who === who))
    return found < 0 ? null : (this.#strikes.splice(found, 1)[0]?.strike ?? null)
  }
}
