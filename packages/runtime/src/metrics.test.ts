import { describe, expect, it } from 'vitest'
import { createMetrics } from './metrics.ts'

describe('createMetrics', () => {
  it('writes prefixed series with the service and the declared labels', async () => {
    const metrics = createMetrics('ingest')
    const answers = metrics.counter('answers_total', 'Answers given.', ['status'])
    answers.inc({ status: '202' })
    answers.inc({ status: '202' }, 2)
    metrics.gauge('weir_lag_records', 'Records to go.').set({}, 7)
    metrics.histogram('claim_seconds', 'Time of a claim.', ['stage'], [0.1, 1]).observe({ stage: 'dedup' }, 0.5)
    const text = await metrics.text()
    expect(text).toContain('weir_answers_total{status="202",service="ingest"} 3')
    expect(text).toContain('weir_lag_records{service="ingest"} 7')
    expect(text).toContain('weir_claim_seconds_bucket{le="1",service="ingest",stage="dedup"} 1')
  })

  it('forgets a gauge that is removed', async () => {
    const metrics = createMetrics('dedup')
    const lag = metrics.gauge('lag_records', 'Records to go.', ['partition'])
    lag.set({ partition: '1' }, 5)
    lag.remove({ partition: '1' })
    expect(await metrics.text()).not.toContain('partition="1"')
  })

  it.each(['lagMs', 'Lag', 'lag-records', 'wait_ms', 'size_kib', 'events_total'])(
    'refuses %s as the name of a gauge',
    name => {
      expect(() => createMetrics('x').gauge(name, 'help')).toThrowError(/breaks the rule/)
    },
  )

  it('refuses a counter without _total', () => {
    expect(() => createMetrics('x').counter('events', 'help')).toThrowError(/_total/)
  })

  it('lets no input multiply its series', async () => {
    const metrics = createMetrics('x')
    const counter = metrics.counter('events_total', 'Events.', ['type'])
    for (let i = 0; i < 2_000; i++) counter.inc({ type: `type ${i}` })
    const series = (await metrics.text()).split('\n').filter(line => line.startsWith('weir_events_total{'))
    expect(series).toHaveLength(501)
    expect(series.find(line => line.includes('type="other"'))).toMatch(/ 1500$/)
  })

  it('adds the process’s own metrics when asked', async () => {
    const metrics = createMetrics('x', { processMetrics: true })
    expect(await metrics.text()).toContain('process_cpu_seconds_total')
  })
})
