import { setTimeout as delay } from 'node:timers/promises'

/** Waits for `ms` or until the signal aborts, whichever is first. */
export async function sleepUnlessAborted(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await delay(ms, undefined, { signal })
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
