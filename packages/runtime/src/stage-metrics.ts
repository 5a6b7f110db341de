import type { Metrics } from './metrics.ts'

/** What the runner of packages/kafka reports, as metrics; it takes this as its observer. */
export interface StageMetrics {
  batch(topic: string, partition: number, count: number, seconds: number): void
  lag(topic: string, partition: number, count: number): void
  takeOver(partition: number, seconds: number): void
  alarm(kind: string): void
  interrupted(partition: number, kind: string): void
}

/** Metrics of the read-claim-emit runner. */
export function createStageObserver(metrics: Metrics): StageMetrics {
  const batches = metrics.histogram('stage_batch_seconds', 'From claim to commit of one batch.', ['topic'])
  const records = metrics.counter('stage_records_total', 'Records committed, by input topic.', ['topic'])
  const lag = metrics.gauge('stage_lag_records', 'Records between what was read and the end of the input.', [
    'topic',
    'partition',
  ])
  const takeOvers = metrics.histogram('stage_take_over_seconds', 'From raised epoch to first read.', [])
  const alarms = metrics.counter('stage_alarms_total', 'Conditions an operator should look at.', ['kind'])
  const interrupted = metrics.counter('stage_interrupted_total', 'Transactions that did not commit, by kind.', ['kind'])
  return {
    batch: (topic: string, _partition: number, count: number, seconds: number) => {
      batches.observe({ topic }, seconds)
      records.inc({ topic }, count)
    },
    lag: (topic: string, partition: number, count: number) => lag.set({ topic, partition: String(partition) }, count),
    takeOver: (_partition: number, seconds: number) => takeOvers.observe({}, seconds),
    alarm: (kind: string) => alarms.inc({ kind }),
    interrupted: (_partition: number, kind: string) => interrupted.inc({ kind }),
  }
}
