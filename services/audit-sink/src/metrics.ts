import type { Metrics } from '@weir/runtime'

export interface SinkMetrics {
  landed(topic: string, messages: number, opaque: number): void
  landing(seconds: number): void
  lag(topic: string, partition: number, records: number): void
  lagSeconds(topic: string, partition: number, seconds: number): void
  gap(topic: string): void
  partitionsAhead(days: number): void
}

export function createSinkMetrics(metrics: Metrics): SinkMetrics {
  const rows = metrics.counter('audit_rows_total', 'Messages landed, by topic.', ['topic'])
  const opaque = metrics.counter('audit_opaque_total', 'Messages landed whose value could not be read.', ['topic'])
  const batch = metrics.histogram('audit_batch_seconds', 'Time of one landing transaction.', [])
  const lag = metrics.gauge('audit_lag_records', 'Records between what landed and the end of the log.', [
    'topic',
    'partition',
  ])
  const lagSeconds = metrics.gauge(
    'audit_lag_seconds',
    'Age of the newest message read while more wait behind it; 0 at the end of the log.',
    ['topic', 'partition'],
  )
  const gaps = metrics.counter('audit_gap_total', 'Partitions that stopped because offsets are missing.', ['topic'])
  const ahead = metrics.gauge('audit_partitions_ahead', 'Days from today on for which the store has a partition.', [])
  return {
    landed: (topic, messages, unread) => {
      rows.inc({ topic }, messages)
      if (unread > 0) opaque.inc({ topic }, unread)
    },
    landing: seconds => batch.observe({}, seconds),
    lag: (topic, partition, records) => lag.set({ topic, partition: String(partition) }, records),
    lagSeconds: (topic, partition, seconds) => lagSeconds.set({ topic, partition: String(partition) }, seconds),
    gap: topic => gaps.inc({ topic }),
    partitionsAhead: days => ahead.set({}, days),
  }
}
