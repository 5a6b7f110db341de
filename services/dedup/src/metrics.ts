import type { Metrics } from '@weir/runtime'

export interface DedupMetrics {
  decided(verdict: string, reason: string, copies: number): void
  cacheAnswered(records: number): void
  payloadDiffers(): void
}

export function createDedupMetrics(metrics: Metrics): DedupMetrics {
  const decisions = metrics.counter('dedup_decisions_total', 'Deliveries decided, by verdict and reason.', [
    'verdict',
    'reason',
  ])
  const cached = metrics.counter('dedup_cache_answers_total', 'Records answered by the hot cache.', [])
  const differing = metrics.counter(
    'dedup_payload_differs_total',
    'Duplicates whose payload differs from the original.',
    [],
  )
  return {
    decided: (verdict, reason, copies) => decisions.inc({ verdict, reason }, copies),
    cacheAnswered: records => cached.inc({}, records),
    payloadDiffers: () => differing.inc({}, 1),
  }
}
