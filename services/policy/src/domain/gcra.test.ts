import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { advancedTatUs, emissionIntervalUs, localShare, slotUs, usedNow, type Cell } from './gcra.ts'

/** Asks for one event after each gap and says when it passes: at once, or at the slot reserved for it. */
function passTimes(rate: { limit: number; periodSeconds: number; burst: number }, gapsUs: readonly number[]): number[] {
  let cell: Cell = { intervalUs: emissionIntervalUs(rate.limit, rate.periodSeconds), burst: rate.burst, tatUs: 0 }
  let nowUs = 1_700_000_000_000_000
  return gapsUs.map(gap => {
    nowUs += gap
    const passUs = Math.max(nowUs, slotUs(cell, nowUs))
    cell = { ...cell, tatUs: advancedTatUs(cell, nowUs) }
    return passUs
  })
}

const rates = fc.record({
  limit: fc.integer({ min: 1, max: 1_000 }),
  periodSeconds: fc.integer({ min: 1, max: 3_600 }),
  burst: fc.integer({ min: 1, max: 50 }),
})

describe('a rate', () => {
  it('lets at most burst + ceil(L/T) - 1 pass in any time L, reserved slots included', () => {
    fc.assert(
      fc.property(rates, fc.array(fc.integer({ min: 0, max: 3_000_000 }), { maxLength: 60 }), (rate, gaps) => {
        const times = passTimes(rate, gaps).toSorted((a, b) => a - b)
        const intervalUs = emissionIntervalUs(rate.limit, rate.periodSeconds)
        for (let i = 0; i < times.length; i++) {
          for (let j = i; j < times.length; j++) {
            const lengthUs = (times[j] ?? 0) - (times[i] ?? 0) + 1
            expect(j - i + 1).toBeLessThanOrEqual(rate.burst + Math.ceil(lengthUs / intervalUs) - 1)
          }
        }
      }),
    )
  })

  it('never lets more pass by rounding', () => {
    fc.assert(
      fc.property(rates, ({ limit, periodSeconds }) => {
        expect(emissionIntervalUs(limit, periodSeconds) * limit).toBeGreaterThanOrEqual(periodSeconds * 1_000_000)
      }),
    )
  })

  it('counts what was taken and not yet filled again', () => {
    expect(usedNow({ intervalUs: 10, burst: 3, tatUs: 125 }, 100)).toBe(3)
    expect(usedNow({ intervalUs: 10, burst: 3, tatUs: 90 }, 100)).toBe(0)
  })

  it('is split between instances so that their shares do not add up to more, but for one event each', () => {
    fc.assert(
      fc.property(rates, fc.integer({ min: 1, max: 20 }), ({ limit, periodSeconds, burst }, instances) => {
        const whole = { intervalUs: emissionIntervalUs(limit, periodSeconds), burst }
        const part = localShare(whole, 1 / instances)
        expect(instances / part.intervalUs).toBeLessThanOrEqual(1.000001 / whole.intervalUs)
        expect(part.burst).toBeLessThanOrEqual(Math.max(1, burst / instances))
      }),
    )
  })
})
