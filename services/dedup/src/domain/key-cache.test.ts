import fc from 'fast-check'
import { sha256 } from '@weir/core'
import { describe, expect, it } from 'vitest'
import { KeyCache } from './key-cache.ts'

const claim = (offset: number) => ({
  offset,
  deliveryId: '018bcfe5-6800-7fff-bfff-0000000000ff',
  payloadDigest: sha256(String(offset)),
})
const key = (n: number) => sha256(`key ${n}`)

describe('the hot cache', () => {
  it('never answers for a record at or below the winner: those are re-reads and go to Postgres', () => {
    const cache = new KeyCache(64)
    cache.remember(key(1), claim(10))
    expect(cache.find(key(1), 9)).toBeNull()
    expect(cache.find(key(1), 10)).toBeNull()
    expect(cache.find(key(1), 11)).toEqual(claim(10))
  })

  it('keeps the newer of two winners of a key', () => {
    const cache = new KeyCache(64)
    cache.remember(key(1), claim(10))
    cache.remember(key(1), claim(4))
    expect(cache.find(key(1), 11)?.offset).toBe(10)
  })

  it('answers only what a map of everything remembered would answer, whatever was pushed out', () => {
    const step = fc.record({ n: fc.nat(200), offset: fc.nat(1_000) })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 400 }), steps => {
        const cache = new KeyCache(32)
        const all = new Map<number, number>()
        for (const { n, offset } of steps) {
          const found = cache.find(key(n), offset)?.offset ?? null
          expect([null, all.get(n)]).toContain(found)
          cache.remember(key(n), claim(offset))
          all.set(n, Math.max(all.get(n) ?? -1, offset))
        }
        expect(cache.size).toBeLessThanOrEqual(32)
      }),
      { numRuns: 200 },
    )
  })

  it('is off with a capacity of 0', () => {
    const cache = new KeyCache(0)
    cache.remember(key(1), claim(10))
    expect(cache.find(key(1), 11)).toBeNull()
  })
})
