import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createSourceRules } from './source-rules.ts'
import { ageMs, defaultWindowMs, isOutsideWindow, keptUntilMs, marginMs, windowOf } from './window.ts'

const daySeconds = 86_400
const time = fc.integer({ min: 0, max: 4_102_444_800_000 })
const window = fc.integer({ min: 1, max: 3_650 * daySeconds * 1_000 })

describe('the window', () => {
  it('holds an event that is exactly as old, and not one that is a millisecond older', () => {
    fc.assert(
      fc.property(time, window, (eventTimeMs, windowMs) => {
        const event = { eventTimeMs, eventTimeSigned: true }
        const edge = eventTimeMs + windowMs
        expect(isOutsideWindow(ageMs(event, edge - 1), windowMs)).toBe(false)
        expect(isOutsideWindow(ageMs(event, edge), windowMs)).toBe(false)
        expect(isOutsideWindow(ageMs(event, edge + 1), windowMs)).toBe(true)
      }),
    )
  })

  it('holds every event without a signed time, or with one in the future', () => {
    fc.assert(
      fc.property(time, time, window, fc.boolean(), (eventTimeMs, appendedAtMs, windowMs, eventTimeSigned) => {
        expect(isOutsideWindow(ageMs({ eventTimeMs: null, eventTimeSigned }, appendedAtMs), windowMs)).toBe(false)
        expect(isOutsideWindow(ageMs({ eventTimeMs, eventTimeSigned: false }, appendedAtMs), windowMs)).toBe(false)
        const future = { eventTimeMs: appendedAtMs + eventTimeMs + 1, eventTimeSigned: true }
        expect(isOutsideWindow(ageMs(future, appendedAtMs), windowMs)).toBe(false)
      }),
    )
  })

  it('leaves no gap: when a claim may go, every copy that is still inside by its signed time was appended before', () => {
    const around = fc.integer({ min: -3, max: 3 })
    fc.assert(
      fc.property(time, window, fc.nat(10_000_000_000), around, (signedMs, windowMs, delayMs, nearMs) => {
        const claimedAtMs = signedMs + delayMs
        const goneAfterMs = keptUntilMs(claimedAtMs, windowMs)
        // The horizon has passed what is kept, and the copy is appended at the horizon or later.
        const copyAtMs = goneAfterMs + 1 + Math.max(0, nearMs)
        expect(isOutsideWindow(ageMs({ eventTimeMs: signedMs, eventTimeSigned: true }, copyAtMs), windowMs)).toBe(true)
      }),
    )
  })

  it('leaves no gap either when the provider’s clock, or another broker’s, differs by up to the margin', () => {
    fc.assert(
      fc.property(time, window, fc.double({ min: 0, max: 1, noNaN: true }), (claimedAtMs, windowMs, share) => {
        const aheadMs = Math.floor(marginMs(windowMs) * share)
        const event = { eventTimeMs: claimedAtMs + aheadMs, eventTimeSigned: true }
        const copyAtMs = keptUntilMs(claimedAtMs, windowMs) + 1
        expect(isOutsideWindow(ageMs(event, copyAtMs), windowMs)).toBe(true)
        // Without a signed time: a copy inside the window of the first is appended before the claim may go.
        expect(claimedAtMs + windowMs).toBeLessThanOrEqual(copyAtMs - 1 - aheadMs)
      }),
    )
  })
})

describe('which window', () => {
  const source = { tenant: 'acme', windowSeconds: 30 * daySeconds, typeWindows: [], businessKey: null }
  const space = { space: 'orders', paths: ['/id'] }
  const rules = createSourceRules({
    sources: [
      {
        ...source,
        name: 'shop',
        onPayloadChange: 'park',
        businessKey: space,
        typeWindows: [
          { types: ['invoice.paid', 'refund.*'], windowSeconds: 90 * daySeconds },
          { types: ['invoice.*'], windowSeconds: 10 * daySeconds },
        ],
      },
    ],
    clients: [
      { ...source, name: 'api', windowSeconds: 7 * daySeconds, businessKey: space },
      { ...source, name: 'api', tenant: 'globex', windowSeconds: 9 * daySeconds },
    ],
  })
  const days = (sourceName: string, type: string, tenant = 'acme'): number =>
    rules.windowMs({ tenant, source: sourceName, type }) / daySeconds / 1_000

  it('is that of the first rule that names the type, else of the source, else 30 days', () => {
    expect(days('shop', 'invoice.paid')).toBe(90)
    expect(days('shop', 'invoice.sent')).toBe(10)
    expect(days('shop', 'refund.')).toBe(90)
    expect(days('shop', 'order.paid')).toBe(30)
    expect(days('api', 'order.paid')).toBe(7)
    expect(days('api', 'order.paid', 'globex')).toBe(9)
    expect(days('gone', 'order.paid') * daySeconds * 1_000).toBe(defaultWindowMs)
    expect(windowOf(undefined, 'x')).toBe(defaultWindowMs)
  })

  it('keeps a claim with a business key as long as any source of its key space needs', () => {
    const event = { tenant: 'acme', source: 'api', type: 'order.paid' }
    expect(rules.keptMs({ ...event, businessKey: null })).toBe(7 * daySeconds * 1_000)
    expect(rules.keptMs({ ...event, businessKey: { space: 'orders' } })).toBe(90 * daySeconds * 1_000)
    expect(rules.keptMs({ ...event, businessKey: { space: 'unknown' } })).toBe(defaultWindowMs)
  })
})
