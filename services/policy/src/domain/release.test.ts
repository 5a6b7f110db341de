import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { quantumBytes, takeFairly } from './fair-share.ts'
import { dueDeliveries, runLimit, type Candidate } from './release.ts'

const candidate = (decisionId: string, more: Partial<Candidate> = {}): Candidate => ({
  decisionId,
  agent: 'triage',
  orderingKey: 'acme/one',
  tenant: 'acme',
  nextAttempt: 1,
  releasedAttempt: 0,
  releasedAtMs: null,
  notBeforeMs: null,
  hasEnded: false,
  eventBytes: 100,
  ...more,
})
const options = { nowMs: 1_000, claimTimeoutMs: 100, runLimitOf: () => 64 }
const due = (...candidates: Candidate[]): string[] =>
  dueDeliveries(candidates, options).map(({ decisionId }) => decisionId)

describe('deliveries that wait', () => {
  it('are due from the head of their group up to the first that is not', () => {
    expect(
      due(candidate('a', { notBeforeMs: 900 }), candidate('b'), candidate('c', { notBeforeMs: 1_001 }), candidate('d')),
    ).toEqual(['a', 'b'])
  })

  it('are held back by one that is under way or whose end is not settled', () => {
    expect(due(candidate('a', { hasEnded: true }), candidate('b'))).toEqual([])
    expect(due(candidate('a', { releasedAttempt: 1, releasedAtMs: 950 }), candidate('b'))).toEqual([])
  })

  it('are due again when their release was not claimed in time', () => {
    expect(due(candidate('a', { releasedAttempt: 1, releasedAtMs: 850 }))).toEqual(['a'])
  })

  it('of another agent or ordering key do not hold each other back', () => {
    expect(due(candidate('a', { notBeforeMs: 2_000 }), candidate('b', { agent: 'watch' }))).toEqual(['b'])
  })

  it('leave together only as many as the rates would let pass at once', () => {
    const rate = {
      kind: 'rate',
      name: 'r',
      scope: 'tenant',
      tenants: ['acme'],
      limit: 5,
      periodSeconds: 1,
      burst: 5,
    } as const
    expect(runLimit([rate], 'acme')).toBe(1)
    expect(runLimit([{ ...rate, limit: 100 }], 'acme')).toBe(20)
    expect(runLimit([rate], 'globex')).toBe(64)
  })
})

describe('turns between tenants', () => {
  const items = fc.array(
    fc.record({ tenant: fc.constantFrom('a', 'b', 'c'), eventBytes: fc.integer({ min: 0, max: 200_000 }) }),
    { maxLength: 80 },
  )

  it('take everything when there is room, and keep the order within a tenant', () => {
    fc.assert(
      fc.property(items, fc.integer({ min: 0, max: 100 }), (waiting, limit) => {
        const taken = takeFairly(waiting, limit, new Map())
        expect(taken).toHaveLength(Math.min(limit, waiting.length))
        for (const tenant of ['a', 'b', 'c']) {
          const mine = waiting.filter(item => item.tenant === tenant)
          const got = taken.filter(item => item.tenant === tenant)
          expect(got).toEqual(mine.slice(0, got.length))
        }
      }),
    )
  })

  it('differ between two backlogged tenants by at most a quantum and the largest event', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 60_000 }), { minLength: 40, maxLength: 40 }), sizes => {
        const backlog = sizes.flatMap((eventBytes, i) => [{ tenant: i % 2 === 0 ? 'a' : 'b', eventBytes }])
        const taken = takeFairly(backlog, 12, new Map())
        const served = (tenant: string): number =>
          taken.filter(item => item.tenant === tenant).reduce((sum, item) => sum + item.eventBytes, 0)
        expect(Math.abs(served('a') - served('b'))).toBeLessThanOrEqual(2 * quantumBytes + 60_000)
      }),
    )
  })
})
