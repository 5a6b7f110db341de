import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { matches } from './pattern.ts'

describe('a pattern', () => {
  it('matches itself, and with a star any text it begins', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (head, tail) => {
        fc.pre(!head.endsWith('*'))
        expect(matches(head, head)).toBe(true)
        expect(matches(`${head}*`, head + tail)).toBe(true)
        expect(matches(head, head + tail)).toBe(tail === '')
      }),
    )
  })
})
