import { WeirError } from '@weir/core'
import type { EventOutcome } from '../domain/answer.ts'
import type { IngestMetrics } from '../metrics.ts'

const retryAfterSeconds = 2

/** What an event becomes when it could not be appended. An error that is no answer (a bug) is thrown on. */
export function publishFailure(error: unknown, metrics: IngestMetrics): EventOutcome {
  if (!(error instanceof WeirError)) throw error
  metrics.publishFailures.inc({ code: error.code })
  // No retry can make a record smaller.
  if (error.code === 'record_too_large') return { kind: 'refused', code: 'too_large', detail: null }
  if (error.retriable) return { kind: 'unavailable', retryAfterSeconds }
  throw error
}
