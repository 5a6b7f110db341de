import { describe, expect, it } from 'vitest'
import { newClusterId } from './kafka.ts'

describe('a new cluster id', () => {
  it('never begins with a dash, which the formatting tool would take for an option', () => {
    for (let first = 0; first < 256; first++) {
      expect(newClusterId(Buffer.alloc(16, first))).toMatch(/^[A-Za-z0-9_][A-Za-z0-9_-]{21}$/)
    }
  })
})
