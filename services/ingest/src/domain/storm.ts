/** Which deliveries of one second are written by themselves and which are counted together. */
export interface StormGate {
  /** Counts one more of `key` in the second of `nowMs`; true while it is within the threshold. */
  readonly admits: (key: string, nowMs: number) => boolean
}

/** Most keys that are counted within a second; beyond it everything counts as alone, which costs records, never deliveries. */
const maxKeys = 100_000

export function stormGate(thresholdPerSecond: number): StormGate {
  let second = -1
  const counts = new Map<string, number>()
  return {
    admits: (key, nowMs) => {
      const now = Math.floor(nowMs / 1000)
      if (now !== second) {
        counts.clear()
        second = now
      }
      const count = (counts.get(key) ?? 0) + 1
      if (count > 1 || counts.size < maxKeys) counts.set(key, count)
      return count <= thresholdPerSecond
    },
  }
}
