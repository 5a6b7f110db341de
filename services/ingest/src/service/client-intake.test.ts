import fc from 'fast-check'
import { WeirError } from '@weir/core'
import { createMetrics } from '@weir/runtime'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createMemoryClaims, createMemoryLog, emptyCache } from '../adapters/testing/memory-edge.ts'
import type { EventOutcome } from '../domain/answer.ts'
import { edgeDigest, toRawEvent } from '../domain/event-draft.ts'
import { readClientRequest } from '../domain/client-request.ts'
import { clientOf, headersOf } from '../domain/testing/sources.ts'
import { createIngestMetrics } from '../metrics.ts'
import type { EdgeCache, EdgeClaims, EventLog } from '../ports.ts'
import { createClientIntake, type ClientIntake, type Submission } from './client-intake.ts'

const leaseMs = 200
const waitMs = 300

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

let ids = 0
function submissionOf(key: string, payload: number, onDuplicate: 'conflict' | 'replay' = 'conflict'): Submission {
  const client = clientOf({ onDuplicate })
  const body = Buffer.from(JSON.stringify({ event_key: key, type: 't', data: payload }))
  const read = readClientRequest(client, body, headersOf({ 'content-type': 'application/json' }))
  if (read.kind !== 'single' || read.item.kind !== 'event') throw new Error('not an event')
  const event = toRawEvent(read.item.draft, {
    tenant: client.tenant,
    source: client.name,
    credentialId: client.name,
    deliveryId: `delivery-${ids++}`,
    receivedAtMs: 0,
    traceparent: null,
    tracestate: null,
  })
  return { client, event, digest: edgeDigest(read.item.draft) }
}

function intakeOf(parts: { log: EventLog; claims: EdgeClaims; cache?: EdgeCache }): ClientIntake {
  const metrics = createIngestMetrics(createMetrics('ingest'))
  return createClientIntake({ cache: emptyCache, metrics, faultPoint: () => undefined, lingerMs: 2, waitMs, ...parts })
}

const claimsOf = (): EdgeClaims => createMemoryClaims({ nowMs: () => Date.now(), leaseMs })

async function settled(outcomes: readonly Promise<EventOutcome>[]): Promise<EventOutcome[]> {
  const all = Promise.all(outcomes)
  await vi.advanceTimersByTimeAsync(60_000)
  return await all
}

const waitFor = async (ms: number): Promise<void> =>
  await new Promise(resolve => {
    setTimeout(resolve, ms)
  })

describe('the edge of API clients', () => {
  it('gives one of 100 at once the event, and the others its name', async () => {
    const log = createMemoryLog(async () => await waitFor(20))
    const intake = intakeOf({ log, claims: claimsOf() })
    const outcomes = await settled(Array.from({ length: 100 }, async () => await intake.submit(submissionOf('k', 1))))
    const winner = outcomes.find(outcome => outcome.kind === 'accepted')
    expect(outcomes.filter(outcome => outcome.kind === 'accepted')).toHaveLength(1)
    expect(outcomes.filter(outcome => outcome.kind === 'duplicate')).toHaveLength(99)
    const names = outcomes.flatMap(outcome => (outcome.kind === 'duplicate' ? [outcome.originalDeliveryId] : []))
    expect(new Set(names)).toEqual(new Set([winner?.kind === 'accepted' ? winner.deliveryId : '']))
    expect(log.events).toHaveLength(1)
  })

  it('tells another payload apart, and gives the first answer again where the client wants that', async () => {
    const intake = intakeOf({ log: createMemoryLog(), claims: claimsOf() })
    const [first] = await settled([intake.submit(submissionOf('k', 1))])
    const deliveryId = first?.kind === 'accepted' ? first.deliveryId : ''
    expect(await settled([intake.submit(submissionOf('k', 2))])).toEqual([
      { kind: 'payload_mismatch', originalDeliveryId: deliveryId },
    ])
    expect(await settled([intake.submit(submissionOf('k', 1, 'replay'))])).toEqual([{ kind: 'replayed', deliveryId }])
  })

  it('does not make a second request wait longer than it may', async () => {
    const intake = intakeOf({ log: createMemoryLog(async () => await waitFor(1_000)), claims: claimsOf() })
    const [first, second] = await settled([intake.submit(submissionOf('k', 1)), intake.submit(submissionOf('k', 1))])
    expect(second).toMatchObject({
      kind: 'in_progress',
      originalDeliveryId: first?.kind === 'accepted' ? first.deliveryId : '',
    })
  })

  it('is unavailable, never accepted, without Kafka; the retry goes through under the same delivery id', async () => {
    let isAway = true
    const log = createMemoryLog(() =>
      isAway ? Promise.reject(new WeirError('broker_unavailable', 'gone')) : Promise.resolve(),
    )
    const claims = claimsOf()
    const intake = intakeOf({ log, claims })
    const first = submissionOf('k', 1)
    expect((await settled([intake.submit(first)]))[0]?.kind).toBe('unavailable')
    isAway = false
    expect(await settled([intake.submit(submissionOf('k', 1))])).toEqual([
      { kind: 'accepted', deliveryId: first.event.deliveryId },
    ])
  })

  it('is unavailable without Postgres, before and after the event was written', async () => {
    const gone = (): Promise<never> => Promise.reject(new WeirError('database_unavailable', 'gone'))
    const log = createMemoryLog()
    const none = intakeOf({ log, claims: { ...claimsOf(), claim: gone } })
    expect((await settled([none.submit(submissionOf('a', 1))]))[0]?.kind).toBe('unavailable')
    expect(log.events).toHaveLength(0)

    const claims = claimsOf()
    const half = intakeOf({ log, claims: { ...claims, accept: gone } })
    expect((await settled([half.submit(submissionOf('b', 1))]))[0]?.kind).toBe('unavailable')
    const [retry] = await settled([intakeOf({ log, claims }).submit(submissionOf('b', 1))])
    expect(retry?.kind).toBe('accepted')
    expect(new Set(log.events.map(event => event.deliveryId)).size).toBe(1)
  })

  it('asks no store for a key the cache knows in this log', async () => {
    const log = createMemoryLog()
    const known = submissionOf('k', 1)
    const cache: EdgeCache = {
      read: async keys => await Promise.resolve(keys.map(() => ({ deliveryId: 'cached', digest: known.digest }))),
      write: () => undefined,
    }
    const claims = { ...claimsOf(), claim: () => Promise.reject(new Error('asked')) }
    expect(await settled([intakeOf({ log, claims, cache }).submit(known)])).toEqual([
      { kind: 'duplicate', originalDeliveryId: 'cached' },
    ])
  })
})

describe('any mix of instances, failures, slow brokers and expired leases', () => {
  const append = fc.record({
    delayMs: fc.constantFrom(0, 5, 50, 150, 250, 500),
    result: fc.constantFrom('ok', 'ok', 'lost', 'written_but_reported_lost'),
  })
  const request = fc.record({
    atMs: fc.integer({ min: 0, max: 900 }),
    instance: fc.nat({ max: 1 }),
    payload: fc.nat({ max: 1 }),
    storeMs: fc.constantFrom(0, 3, 40, 260),
  })

  it('accepts a key at most once, names one delivery only, and it is in the log', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(request, { minLength: 1, maxLength: 8 }),
        fc.array(append, { minLength: 8, maxLength: 8 }),
        async (requests, appends) => {
          const log = createMemoryLog()
          const slow = { ...log, append: appendAs(log, appends) }
          const claims = claimsOf()
          const slowly = async <T>(i: number, work: () => Promise<T>): Promise<T> => {
            await waitFor(requests[i % requests.length]?.storeMs ?? 0)
            return await work()
          }
          let call = 0
          const delayed: EdgeClaims = {
            ...claims,
            claim: async (asked, logId) => await slowly(call++, async () => await claims.claim(asked, logId)),
            accept: async (asked, logId) => await slowly(call++, async () => await claims.accept(asked, logId)),
          }
          const instances = [intakeOf({ log: slow, claims: delayed }), intakeOf({ log: slow, claims: delayed })]
          const outcomes = await settled(
            requests.map(async ({ atMs, instance, payload }) => {
              await waitFor(atMs)
              const outcome = await instances[instance]?.submit(submissionOf('k', payload))
              if (outcome === undefined) throw new Error('no instance')
              // An answer that says the event is in Kafka is true when it is given.
              expect(namesAcceptedEvent(outcome) && log.events.length === 0).toBe(false)
              return outcome
            }),
          )
          expect(outcomes.filter(outcome => outcome.kind === 'accepted').length).toBeLessThanOrEqual(1)
          const named = new Set(outcomes.filter(namesAcceptedEvent).map(nameIn))
          const written = new Set(log.events.map(event => event.deliveryId))
          expect(written.size).toBeLessThanOrEqual(1)
          for (const name of named) expect(written).toContain(name)
        },
      ),
      { numRuns: 300 },
    )
  })
})

function namesAcceptedEvent(outcome: EventOutcome): boolean {
  return outcome.kind === 'accepted' || outcome.kind === 'duplicate' || outcome.kind === 'payload_mismatch'
}

function nameIn(outcome: EventOutcome): string {
  if (outcome.kind === 'accepted') return outcome.deliveryId
  return 'originalDeliveryId' in outcome ? (outcome.originalDeliveryId ?? '') : ''
}

/** The n-th append takes as long and ends as the n-th entry says. */
function appendAs(
  log: EventLog,
  appends: readonly { readonly delayMs: number; readonly result: string }[],
): EventLog['append'] {
  let n = 0
  return async event => {
    const { delayMs, result } = appends[n++ % appends.length] ?? { delayMs: 0, result: 'ok' }
    await waitFor(delayMs)
    if (result !== 'lost') await log.append(event)
    if (result !== 'ok') throw new WeirError('broker_unavailable', 'no acknowledgement')
  }
}
