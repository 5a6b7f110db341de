// Extends kafkajs `src/network/requestQueue`. The original reschedules its check each millisecond with a negative time-out even
// when nothing waits: Node 24 warns about it, and idle producers burn CPU.

interface RequestQueueState {
  throttleCheckTimeoutId: NodeJS.Timeout | null
  readonly throttledUntil: number
  readonly pending: readonly unknown[]
  checkPendingRequests(): void
}

const checkIntervalMs = 10

/** For the prototype's `scheduleCheckPendingRequests`: only when a request waits, and never into the past. */
export function scheduleCheckPendingRequests(this: RequestQueueState): void {
  if (this.throttleCheckTimeoutId || this.pending.length === 0) return
  const throttledMs = this.throttledUntil - Date.now()
  this.throttleCheckTimeoutId = setTimeout(
    () => {
      this.throttleCheckTimeoutId = null
      this.checkPendingRequests()
    },
    throttledMs > 0 ? throttledMs : checkIntervalMs,
  )
}
