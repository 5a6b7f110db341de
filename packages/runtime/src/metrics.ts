import { WeirError } from '@weir/core'
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'

/** A value for each declared label; a metric without labels takes `{}`. */
export type LabelValues<Label extends string> = Readonly<Record<Label, string>>

export interface CounterMetric<Label extends string> {
  /** Adds `by` (default 1). */
  inc(labels: LabelValues<Label>, by?: number): void
}

export interface GaugeMetric<Label extends string> {
  set(labels: LabelValues<Label>, value: number): void
  /** Forgets one combination, for example of a partition that is no longer owned. */
  remove(labels: LabelValues<Label>): void
}

export interface HistogramMetric<Label extends string> {
  /** In the base unit of the name: seconds or bytes. */
  observe(labels: LabelValues<Label>, value: number): void
}

export interface Metrics {
  readonly registry: Registry
  /** `name` without the prefix `weir_`; ends in `_total`. */
  counter<const Label extends string = never>(
    name: string,
    help: string,
    labels?: readonly Label[],
  ): CounterMetric<Label>
  gauge<const Label extends string = never>(name: string, help: string, labels?: readonly Label[]): GaugeMetric<Label>
  /** `name` ends in `_seconds`, `_bytes` or a plain count. `buckets`: upper bounds; default: 1 ms to 30 s. */
  histogram<const Label extends string = never>(
    name: string,
    help: string,
    labels?: readonly Label[],
    buckets?: readonly number[],
  ): HistogramMetric<Label>
  /** Prometheus text format. */
  text(): Promise<string>
}

/** Combinations of label values a metric may have; what comes later is counted under `other`, so that no input can grow it. */
const maxCombinations = 500
const latencyBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** Metrics of one process; every series carries `service`. Declare each metric once, in the service's `metrics.ts`. */
export function createMetrics(service: string, options: { readonly processMetrics?: boolean } = {}): Metrics {
  const registry = new Registry()
  registry.setDefaultLabels({ service })
  if (options.processMetrics === true) collectDefaultMetrics({ register: registry })
  return {
    registry,
    counter: (name, help, labels = []) => {
      if (!name.endsWith('_total')) throw badName(name, 'a counter ends in _total')
      const metric = new Counter({ name: fullName(name), help, labelNames: [...labels], registers: [registry] })
      const limit = limiter(labels)
      return { inc: (values, by = 1) => metric.inc(limit(values), by) }
    },
    gauge: (name, help, labels = []) => {
      if (name.endsWith('_total')) throw badName(name, 'only a counter ends in _total')
      const metric = new Gauge({ name: fullName(name), help, labelNames: [...labels], registers: [registry] })
      const limit = limiter(labels)
      return {
        set: (values, value) => metric.set(limit(values), value),
        remove: values => metric.remove(limit(values)),
      }
    },
    histogram: (name, help, labels = [], buckets = latencyBuckets) => {
      const settings = { name: fullName(name), help, labelNames: [...labels], buckets: [...buckets] }
      const metric = new Histogram({ ...settings, registers: [registry] })
      const limit = limiter(labels)
      return { observe: (values, value) => metric.observe(limit(values), value) }
    },
    text: async () => await registry.metrics(),
  }
}

function fullName(name: string): string {
  if (!/^[a-z][a-z0-9]*(_[a-z0-9]+)*$/.test(name)) throw badName(name, 'lower-case words joined by underscores')
  if (/_(ms|milliseconds|minutes|kb|mb|kib|mib)(_total)?$/.test(name))
    throw badName(name, 'use base units: seconds, bytes')
  return name.startsWith('weir_') ? name : `weir_${name}`
}

function badName(name: string, rule: string): WeirError {
  return new WeirError('internal', `The metric name "${name}" breaks the rule: ${rule}`)
}

function limiter<Label extends string>(labels: readonly Label[]): (values: LabelValues<Label>) => LabelValues<Label> {
  const seen = new Set<string>()
  const other = Object.fromEntries(labels.map(label => [label, 'other'])) as LabelValues<Label>
  return values => {
    if (labels.length === 0) return values
    const combination = labels.map(label => values[label]).join('\u0000')
    if (seen.has(combination)) return values
    if (seen.size >= maxCombinations) return other
    seen.add(combination)
    return values
  }
}
