/** A seeded source of numbers: the same seed gives the same sequence everywhere. */
export class Random {
  #a: number

  constructor(seed: number) {
    this.#a = (seed ^ 0x9e3779b9) >>> 0
    for (let i = 0; i < 4; i++) this.next()
  }

  /** From 0 up to, not including, 1. */
  next(): number {
    this.#a = (this.#a + 0x6d2b79f5) >>> 0
    let t = this.#a
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }

  /** Whole number from `from` to `to`, both included. */
  between(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from + 1))
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  pick<T>(items: readonly T[]): T {
    const item = items[Math.floor(this.next() * items.length)]
    if (item === undefined) throw new Error('nothing to pick from')
    return item
  }
}
