// Simulated time: everything that is to happen stands in one queue, and one thing happens after another. Between two things all
// promises settle, so nothing else decides what comes next.
import type { Scheduler } from '@weir/kafka'

interface Entry {
  readonly atMs: number
  readonly order: number
  run: (() => void) | null
}

/** Three seconds before a minute begins: windows of a minute change early in a run. */
export const startMs = 1_800_000_000_000 - 3_000

export class Timeline implements Scheduler {
  #nowMs = startMs
  #order = 0
  #steps = 0
  readonly #heap: Entry[] = []

  nowMs(): number {
    return this.#nowMs
  }

  /** Things that have happened. */
  get steps(): number {
    return this.#steps
  }

  after(delayMs: number, run: () => void): () => void {
    const entry: Entry = { atMs: this.#nowMs + Math.max(0, delayMs), order: this.#order++, run }
    this.#push(entry)
    return () => {
      entry.run = null
    }
  }

  /** Lets things happen until `isOver`, or until nothing is left or `untilMs` has come. */
  async run(isOver: () => boolean, untilMs: number): Promise<void> {
    await settled()
    for (let next = this.#pop(); next !== null; next = this.#pop()) {
      const { run } = next
      if (run === null) continue
      if (next.atMs > untilMs) {
        this.#push(next)
        this.#nowMs = Math.max(this.#nowMs, untilMs)
        return
      }
      this.#nowMs = Math.max(this.#nowMs, next.atMs)
      this.#steps++
      run()
      await settled()
      if (isOver()) return
    }
  }

  #push(entry: Entry): void {
    const heap = this.#heap
    let at = heap.length
    heap.push(entry)
    while (at > 0) {
      const parent = (at - 1) >> 1
      const above = heap[parent]
      if (above === undefined || isBefore(above, entry)) break
      heap[at] = above
      at = parent
    }
    heap[at] = entry
  }

  #pop(): Entry | null {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()
    if (first === undefined || last === undefined) return null
    if (heap.length === 0) return first
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      const left = heap[child]
      if (left === undefined) break
      const right = heap[child + 1]
      if (right !== undefined && isBefore(right, left)) child++
      const least = heap[child]
      if (least === undefined || isBefore(last, least)) break
      heap[at] = least
      at = child
    }
    heap[at] = last
    return first
  }
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order)
}

/** Every promise that can settle has settled when the loop comes round: nothing here waits for anything but promises. */
function settled(): Promise<void> {
  return new Promise(resolve => {
    setImmediate(resolve)
  })
}
