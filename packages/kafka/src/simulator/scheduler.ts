/** Time of a simulated cluster: all its waiting goes through here. */
export interface Scheduler {
  /** Milliseconds since 1970. */
  nowMs(): number
  /** Runs once after so many milliseconds; the returned function takes it back. */
  after(delayMs: number, run: () => void): () => void
}

/** The process' own clock and timers; a pending one does not keep the process alive. */
export const realScheduler: Scheduler = {
  nowMs: () => Date.now(),
  after: (delayMs, run) => {
    const timer = setTimeout(run, delayMs)
    timer.unref()
    return () => clearTimeout(timer)
  },
}

/** Time that stands still until it is moved. */
export interface ManualScheduler extends Scheduler {
  /** Moves time forward and runs what falls due, in order; promises settle in between. */
  advance(byMs: number): Promise<void>
}

export function createManualScheduler(startMs = 1_700_000_000_000): ManualScheduler {
  let nowMs = startMs
  let count = 0
  const waiting = new Map<number, { readonly atMs: number; readonly run: () => void }>()
  const nextBefore = (untilMs: number) =>
    [...waiting.entries()]
      .filter(([, { atMs }]) => atMs <= untilMs)
      .toSorted(([a, x], [b, y]) => x.atMs - y.atMs || a - b)
      .at(0)
  return {
    nowMs: () => nowMs,
    after: (delayMs, run) => {
      const id = count++
      waiting.set(id, { atMs: nowMs + Math.max(0, delayMs), run })
      return () => void waiting.delete(id)
    },
    advance: async byMs => {
      const untilMs = nowMs + byMs
      await settled()
      for (let next = nextBefore(untilMs); next; next = nextBefore(untilMs)) {
        const [id, { atMs, run }] = next
        waiting.delete(id)
        nowMs = atMs
        run()
        await settled()
      }
      nowMs = untilMs
    },
  }
}

/** Lets everything that is only waiting for promises go on. */
function settled(): Promise<void> {
  return new Promise(resolve => {
    setImmediate(resolve)
  })
}
