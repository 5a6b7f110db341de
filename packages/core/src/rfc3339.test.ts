import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { rfc3339Ms } from './rfc3339.ts'

describe('RFC 3339 times', () => {
  it('reads what ECMAScript reads', () => {
    fc.assert(
      fc.property(
        fc.date({ min: new Date('0001-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59Z'), noInvalidDate: true }),
        date => {
          expect(rfc3339Ms(date.toISOString())).toBe(date.getTime())
        },
      ),
      { numRuns: 500 },
    )
    expect(rfc3339Ms('2026-02-28T23:30:00.5-01:30')).toBe(Date.parse('2026-02-28T23:30:00.500-01:30'))
    expect(rfc3339Ms('2024-02-29t00:00:00z')).toBe(Date.parse('2024-02-29T00:00:00Z'))
  })

  it('refuses what is not one', () => {
    for (const text of [
      '2023-02-29T00:00:00Z',
      '2026-13-01T00:00:00Z',
      '2026-01-01',
      '2026-01-01T24:00:00Z',
      'now',
      '',
    ]) {
      expect(rfc3339Ms(text)).toBeNull()
    }
  })
})
