import { WeirError } from '@weir/core'
import type { RawEvent } from '@weir/schemas'
import { createMetrics } from '@weir/runtime'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createMemoryLog, type MemoryLog } from '../adapters/testing/memory-edge.ts'
import { toRawEvent } from '../domain/event-draft.ts'
import { headersOf, sourceOf } from '../domain/testing/sources.ts'
import { webhookEvent } from '../domain/webhook-event.ts'
import { prepareSource } from '../domain/webhook-source.ts'
import { createIngestMetrics } from '../metrics.ts'
import { createProviderIntake, type ProviderIntake } from './provider-intake.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const source = prepareSource(sourceOf('github', 's'))
let ids = 0

function eventOf(key: string, body = '{}'): RawEvent {
  const draft = webhookEvent(source, Buffer.from(body), headersOf({ 'x-github-delivery': key }))
  return toRawEvent(draft, {
    tenant: 'acme',
    source: 'github',
    credentialId: 'first',
    deliveryId: `delivery-${ids++}`,
    receivedAtMs: 0,
    traceparent: null,
    tracestate: null,
  })
}

function intakeOf(log: MemoryLog): ProviderIntake {
  return createProviderIntake({
    log,
    clock: { nowMs: () => Date.now() },
    metrics: createIngestMetrics(createMetrics('ingest')),
    faultPoint: () => undefined,
    stormThreshold: 20,
    stormLingerMs: 50,
  })
}

async function deliverAll(intake: ProviderIntake, events: readonly RawEvent[]) {
  const outcomes = Promise.all(events.map(async event => await intake.deliver(event)))
  await vi.advanceTimersByTimeAsync(5_000)
  return await outcomes
}

describe('deliveries of providers', () => {
  it('are all written while a key comes seldom, repeats too', async () => {
    const log = createMemoryLog()
    const outcomes = await deliverAll(intakeOf(log), [eventOf('a'), eventOf('a'), eventOf('b')])
    expect(outcomes.map(outcome => outcome.kind)).toEqual(['accepted', 'accepted', 'accepted'])
    expect(log.events.map(event => event.copies)).toEqual([1, 1, 1])
  })

  it('above 20 of a key and second are counted in one record, each answered after it is written', async () => {
    const log = createMemoryLog()
    const outcomes = await deliverAll(
      intakeOf(log),
      Array.from({ length: 100 }, () => eventOf('a')),
    )
    expect(outcomes.every(outcome => outcome.kind === 'accepted')).toBe(true)
    expect(log.events.map(event => event.copies)).toEqual([...Array.from({ length: 20 }, () => 1), 80])
    const written = new Set(log.events.map(event => event.deliveryId))
    expect(outcomes.every(outcome => outcome.kind === 'accepted' && written.has(outcome.deliveryId))).toBe(true)
  })

  it('with another body are never counted as copies', async () => {
    const log = createMemoryLog()
    const events = Array.from({ length: 60 }, (_, i) => eventOf('a', i % 2 === 0 ? '{}' : '{"other":1}'))
    await deliverAll(intakeOf(log), events)
    const counted = log.events.filter(event => event.copies > 1)
    expect(counted.map(event => [event.data.toString(), event.copies])).toEqual([
      ['{}', 20],
      ['{"other":1}', 20],
    ])
  })

  it('in the next second are written one by one again', async () => {
    const log = createMemoryLog()
    const intake = intakeOf(log)
    await deliverAll(
      intake,
      Array.from({ length: 30 }, () => eventOf('a')),
    )
    await deliverAll(
      intake,
      Array.from({ length: 5 }, () => eventOf('a')),
    )
    expect(log.events.slice(21).map(event => event.copies)).toEqual([1, 1, 1, 1, 1])
  })

  it('are all unavailable when Kafka does not take the record that counts them', async () => {
    const log = createMemoryLog(event =>
      event.copies > 1 ? Promise.reject(new WeirError('publisher_full', 'full')) : Promise.resolve(),
    )
    const outcomes = await deliverAll(
      intakeOf(log),
      Array.from({ length: 50 }, () => eventOf('a')),
    )
    expect(outcomes.filter(outcome => outcome.kind === 'accepted')).toHaveLength(20)
    expect(outcomes.filter(outcome => outcome.kind === 'unavailable')).toHaveLength(30)
  })

  it('that Kafka can never take are refused as too large', async () => {
    const log = createMemoryLog(() => Promise.reject(new WeirError('record_too_large', 'large')))
    expect(await deliverAll(intakeOf(log), [eventOf('a')])).toMatchObject([{ kind: 'refused', code: 'too_large' }])
  })
})
