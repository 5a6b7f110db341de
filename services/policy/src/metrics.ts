import type { Metrics } from '@weir/runtime'

export interface PolicyMetrics {
  judged(verdict: string, gate: string, rule: string): void
  /** Records whose delivery and attempt was claimed from another record before. */
  repeated(): void
  claimed(seconds: number): void
  /** A report of an agent was settled: completed, again, parked, late, moot, repeated, contradicted or unknown. */
  reported(result: string): void
  /** Rows that no re-read can ask for were removed. */
  expired(count: number): void
  released(count: number): void
  /** Deliveries that wait in a partition number, and for how long the oldest has been due, milliseconds. */
  waiting(partition: number, depth: number, oldestDueMs: number): void
  forget(partition: number): void
  limiterDegraded(isDegraded: boolean): void
  limiterAnswered(seconds: number): void
}

export function createPolicyMetrics(metrics: Metrics): PolicyMetrics {
  const verdicts = metrics.counter('policy_verdicts_total', 'Verdicts, by the gate and rule that spoke first.', [
    'verdict',
    'gate',
    'rule',
  ])
  const repeats = metrics.counter('policy_repeats_total', 'Records of an attempt that was claimed before; ignored.')
  const claims = metrics.histogram('policy_claim_seconds', 'Time to judge and claim one batch.')
  const releases = metrics.counter('policy_releases_total', 'Deliveries that re-entered through weir.released.')
  const reports = metrics.counter('policy_reports_total', 'Reports of agents and passed deadlines, by what followed.', [
    'result',
  ])
  const expired = metrics.counter(
    'policy_rows_expired_total',
    'Rows removed because nothing can ask for them any more.',
  )
  const depth = metrics.gauge('policy_deferred_depth', 'Deliveries that wait.', ['partition'])
  const age = metrics.gauge('policy_deferred_age_seconds', 'How long the oldest waiting delivery has been due.', [
    'partition',
  ])
  const degraded = metrics.gauge('policy_limiter_degraded', '1 while rates use a local share because Redis is away.')
  const latency = metrics.histogram('policy_limiter_seconds', 'Time the limiter took for one batch.')
  return {
    judged: (verdict, gate, rule) => verdicts.inc({ verdict, gate, rule }),
    repeated: () => repeats.inc({}),
    claimed: seconds => claims.observe({}, seconds),
    reported: result => reports.inc({ result }),
    expired: count => expired.inc({}, count),
    released: count => releases.inc({}, count),
    waiting: (partition, count, oldestDueMs) => {
      depth.set({ partition: String(partition) }, count)
      age.set({ partition: String(partition) }, oldestDueMs / 1_000)
    },
    forget: partition => {
      depth.remove({ partition: String(partition) })
      age.remove({ partition: String(partition) })
    },
    limiterDegraded: isDegraded => degraded.set({}, isDegraded ? 1 : 0),
    limiterAnswered: seconds => latency.observe({}, seconds),
  }
}
