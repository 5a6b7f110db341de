import { setTimeout as sleep } from 'node:timers/promises'

export interface RetryPolicy {
  /** No new try after this many milliseconds. */
  readonly withinMs: number
  readonly firstDelayMs: number
  readonly maxDelayMs: number
}

/** Tries again what `mayRetry` allows, with delays that double up to the limit, each between half and all of its value. */
export async function retrying<T>(
  policy: RetryPolicy,
  attempt: () => Promise<T>,
  mayRetry: (error: unknown) => boolean,
): Promise<T> {
  const deadline = performance.now() + policy.withinMs
  let delayMs = policy.firstDelayMs
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if (!mayRetry(error) || performance.now() + delayMs > deadline) throw error
    }
    await sleep(delayMs * (0.5 + Math.random() / 2))
    delayMs = Math.min(delayMs * 2, policy.maxDelayMs)
  }
}
