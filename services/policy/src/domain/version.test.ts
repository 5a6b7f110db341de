import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { comparedVersion } from './version.ts'

describe('a version', () => {
  it('is a number, as JSON or a header writes it', () => {
    for (const text of ['0', '17', '-3', '2.50', '1e21', '12345678901234567890123']) {
      expect(comparedVersion(text)).toEqual({ kind: 'number', text })
    }
  })

  it('is a time, with every digit of its fraction', () => {
    expect(comparedVersion('1970-01-01T00:00:01Z')).toEqual({ kind: 'time', text: '1' })
    expect(comparedVersion('1970-01-01T01:00:01.000000001+01:00')).toEqual({ kind: 'time', text: '1.000000001' })
    expect(comparedVersion('1969-12-31T23:59:59.75Z')).toEqual({ kind: 'time', text: '-0.25' })
    expect(comparedVersion('1969-12-31T23:59:58.000Z')).toEqual({ kind: 'time', text: '-2.000' })
  })

  it('orders times as they passed', () => {
    const time = fc.date({ min: new Date('1960-01-01'), max: new Date('1980-01-01'), noInvalidDate: true })
    fc.assert(
      fc.property(time, date => {
        const seconds = Number(comparedVersion(date.toISOString())?.text)
        expect(Math.round(seconds * 1_000)).toBe(date.getTime())
      }),
    )
  })

  it('is nothing else', () => {
    for (const text of [
      '',
      'v2',
      '1.2.3',
      'NaN',
      'Infinity',
      '0x10',
      '1e999',
      '9'.repeat(65),
      '2026-02-30T00:00:00Z',
    ]) {
      expect(comparedVersion(text)).toBeNull()
    }
  })
})
