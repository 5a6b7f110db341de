import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  cutUtf8,
  decisionId,
  eventKey,
  eventKeyText,
  lengthPrefixed,
  maxKeyTextBytes,
  murmur2,
  partitionOf,
  uuidV5,
  uuidV7,
} from './identity.ts'

describe('identities', () => {
  it('gives different keys to lists that a bare join would merge', () => {
    expect(eventKey('a', 'bc', 'd').equals(eventKey('ab', 'c', 'd'))).toBe(false)
    expect(eventKeyText('a/b', 'c', 'd')).not.toBe(eventKeyText('a', 'b/c', 'd'))
  })

  it('length-prefixes injectively', () => {
    const list = fc.array(fc.string({ maxLength: 6 }), { maxLength: 4 })
    fc.assert(
      fc.property(list, list, (a, b) => {
        const same = a.length === b.length && a.every((part, i) => part === b[i])
        expect(lengthPrefixed(a).equals(lengthPrefixed(b))).toBe(same)
      }),
      { numRuns: 500 },
    )
  })

  it('keeps the readable key within its bound and of whole characters', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 600 }), id => {
        const text = eventKeyText('t', 's', id)
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(maxKeyTextBytes)
        expect(text).not.toContain('\ufffd')
      }),
      { numRuns: 200 },
    )
    expect(cutUtf8('aé', 2)).toBe('a')
  })

  it('computes murmur2 as the Java client does', () => {
    // Values of org.apache.kafka.common.utils.UtilsTest.testMurmur2.
    const known: [string, number][] = [
      ['21', -973932308],
      ['foobar', -790332482],
      ['a-little-bit-long-string', -985981536],
      ['a-little-bit-longer-string', -1486304829],
      ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971],
      ['abc', 479470107],
    ]
    for (const [text, hash] of known) expect(murmur2(Buffer.from(text))).toBe(hash)
    expect(partitionOf('foobar', 6)).toBe((-790332482 & 0x7fffffff) % 6)
  })

  it('makes UUIDs of the right version, stable for equal input', () => {
    const key = eventKey('t', 's', '1')
    expect(uuidV5(['a'])).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(decisionId(key, 'd', 'agent', 'policy')).toBe(decisionId(key, 'd', 'agent', 'policy'))
    expect(decisionId(key, 'd', 'agent', 'policy')).not.toBe(decisionId(key, 'd', 'agent', 'dedup'))
    expect(uuidV7(1_700_000_000_000, Buffer.alloc(10, 0xff))).toBe('018bcfe5-6800-7fff-bfff-ffffffffffff')
  })
})
