import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalJson } from './canonical-json.ts'
import { parseJson } from './json-body.ts'

function canonical(text: string): string {
  const parsed = parseJson(Buffer.from(text))
  if (parsed.kind === 'fault') throw new Error(parsed.fault)
  return canonicalJson(parsed.view.bytes, parsed.view.slice)
}

describe('canonical JSON', () => {
  it('writes the examples of RFC 8785', () => {
    const numbers = '[333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001, 56, 1.0]'
    // The first has 17 digits and so keeps its spelling, the one departure.
    expect(canonical(numbers)).toBe('[333333333.33333329,1e+30,4.5,0.002,1e-27,56,1]')
    expect(canonical(String.raw`"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/"`)).toBe(
      String.raw`"€$\u000f\nA'B\"\\\\\"/"`,
    )
    expect(
      canonical(
        '{"1":{"f":{"f":"hi","F":5},"\\n":56.0},"10":{},"":"empty","a":{},"111":[{"e":"yes","E":"no"}],"A":{}}',
      ),
    ).toBe('{"":"empty","1":{"\\n":56,"f":{"F":5,"f":"hi"}},"10":{},"111":[{"E":"no","e":"yes"}],"A":{},"a":{}}')
  })

  it('keeps the value and does not depend on key order or white space', () => {
    const shuffled = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(shuffled)
      if (typeof value !== 'object' || value === null) return value
      return Object.fromEntries(
        Object.entries(value)
          .reverse()
          .map(([k, v]) => [k, shuffled(v)]),
      )
    }
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), value => {
        const text = canonical(JSON.stringify(value))
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)))
        expect(canonical(JSON.stringify(shuffled(value), null, 2))).toBe(text)
      }),
      { numRuns: 300 },
    )
  })

  it('keeps apart numbers that a double would merge', () => {
    expect(canonical('9007199254740992')).not.toBe(canonical('9007199254740993'))
    expect(canonical('1e400')).not.toBe(canonical('1e401'))
  })
})
