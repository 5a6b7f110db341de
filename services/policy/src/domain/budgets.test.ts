import type { CeilingBudget } from '@weir/core'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ceilingAsks, windowAt } from './budgets.ts'
import { isoTime } from './cloud-event.ts'

const times = fc.integer({ min: 0, max: Date.UTC(2200, 0) })

describe('a calendar window in UTC', () => {
  it('of a month is that of the calendar', () => {
    fc.assert(
      fc.property(times, atMs => {
        const at = new Date(atMs)
        const [year, month] = [at.getUTCFullYear(), at.getUTCMonth()]
        expect(windowAt('month', atMs)).toEqual({ startMs: Date.UTC(year, month), endMs: Date.UTC(year, month + 1) })
      }),
    )
  })

  it('holds its time and begins where the one before ends', () => {
    fc.assert(
      fc.property(times, fc.constantFrom('minute' as const, 'hour' as const, 'day' as const), (atMs, kind) => {
        const { startMs, endMs } = windowAt(kind, atMs)
        expect(startMs <= atMs && atMs < (endMs ?? 0)).toBe(true)
        expect(windowAt(kind, startMs - 1).endMs).toBe(startMs)
      }),
    )
  })
})

describe('a time in a header', () => {
  it('is RFC 3339', () => {
    fc.assert(fc.property(times, atMs => isoTime(atMs) === new Date(atMs).toISOString()))
    expect(isoTime(1e300)).toBe(null)
  })
})

describe('ceilings', () => {
  const ceiling = (more: Partial<CeilingBudget>): CeilingBudget => ({
    kind: 'ceiling',
    name: 'steps',
    scope: 'run',
    tenants: [],
    limit: 10,
    window: 'none',
    onExhaust: 'deny',
    ...more,
  })

  it('per run limit only events of a run, of the tenants named', () => {
    const budgets = [ceiling({}), ceiling({ name: 'other', tenants: ['globex'] })]
    expect(ceilingAsks(budgets, { tenant: 'acme', run: null }, 0)).toEqual([])
    expect(ceilingAsks(budgets, { tenant: 'acme', run: 'r/1' }, 0).map(ask => ask.budget)).toEqual([
      'steps/run/acme/r%2f1',
    ])
  })

  it('of two runs or tenants never share a budget', () => {
    const text = fc.string({ minLength: 1, maxLength: 20, unit: 'binary' })
    fc.assert(
      fc.property(text, text, text, text, (tenant, run, otherTenant, otherRun) => {
        fc.pre(tenant !== otherTenant || run !== otherRun)
        const budgetOf = (of: { tenant: string; run: string }) => ceilingAsks([ceiling({})], of, 0)[0]?.budget
        expect(budgetOf({ tenant, run })).not.toBe(budgetOf({ tenant: otherTenant, run: otherRun }))
      }),
    )
  })
})
