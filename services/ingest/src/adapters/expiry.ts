import type { Log } from '@weir/core'
import type { IngestMetrics } from '../metrics.ts'
import type { EdgeClaims } from '../ports.ts'

const everyMs = 60_000
const perCall = 1_000

/** Deletes edge claims whose time is over, in bounded calls. */
export function startExpiry(claims: EdgeClaims, metrics: IngestMetrics, log: Log): { close(): Promise<void> } {
  let running: Promise<void> = Promise.resolve()
  let isClosed = false
  const run = async (): Promise<void> => {
    try {
      let deleted = perCall
      while (deleted === perCall && !isClosed) {
        deleted = await claims.expire(perCall)
        metrics.edgeExpired.inc({}, deleted)
      }
    } catch (error) {
      metrics.edgeFailures.inc({ operation: 'expire' })
      log.warn({ err: error }, 'old edge claims could not be deleted; the next run tries again')
    }
  }
  const timer = setInterval(() => {
    running = running.then(run)
  }, everyMs)
  return {
    close: async () => {
      isClosed = true
      clearInterval(timer)
      await running
    },
  }
}
