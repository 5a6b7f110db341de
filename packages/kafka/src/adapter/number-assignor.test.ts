import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { assignNumbers, type MemberClaim } from './number-assignor.ts'

const claim = (memberId: string, numbers: readonly number[] = [], generation = 1): MemberClaim => ({
  memberId,
  numbers,
  generation,
})
const assigned = (count: number, members: readonly MemberClaim[]) => Object.fromEntries(assignNumbers(count, members))

describe('assignment of partition numbers', () => {
  it('gives a first member everything, and a second one the highest half', () => {
    expect(assigned(4, [claim('a')])).toEqual({ a: [0, 1, 2, 3] })
    expect(assigned(4, [claim('a', [0, 1, 2, 3]), claim('b')])).toEqual({ a: [0, 1], b: [2, 3] })
  })

  it('gives the numbers of a member that left to those who have fewest', () => {
    expect(assigned(6, [claim('a', [0, 1]), claim('c', [4, 5])])).toEqual({ a: [0, 1, 2], c: [3, 4, 5] })
  })

  it('believes the later generation when a member that was thought dead claims its old numbers', () => {
    expect(assigned(2, [claim('zombie', [0, 1], 3), claim('b', [0, 1], 4)])).toEqual({ zombie: [1], b: [0] })
  })

  it('has members without numbers when there are more members than numbers', () => {
    expect(assigned(1, [claim('a'), claim('b', [0])])).toEqual({ a: [], b: [0] })
  })

  it('gives each number once, evenly, and moves none that could stay', () => {
    const history = fc.array(fc.record({ leaves: fc.nat(9), joins: fc.nat(3) }), { maxLength: 12 })
    const property = fc.property(fc.integer({ min: 1, max: 24 }), history, (count, steps) => {
      let members = [claim('m0')]
      let made = 1
      steps.forEach(({ leaves, joins }, generation) => {
        const before = new Map(assignNumbers(count, members))
        const stay = members.filter((_, i) => i !== leaves).map(({ memberId }) => memberId)
        const kept = stay.map(id => claim(id, before.get(id) ?? [], generation))
        members = [...kept, ...Array.from({ length: joins + (stay.length === 0 ? 1 : 0) }, () => claim(`m${made++}`))]
        const after = assignNumbers(count, members)
        const all = [...after.values()].flat().toSorted((a, b) => a - b)
        expect(all).toEqual(Array.from({ length: count }, (_, number) => number))
        const sizes = [...after.values()].map(({ length }) => length)
        expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1)
        // Whoever gave something up got nothing else for it.
        const swapped = kept.filter(({ memberId, numbers }) => {
          const now = after.get(memberId) ?? []
          return numbers.some(number => !now.includes(number)) && now.some(number => !numbers.includes(number))
        })
        expect(swapped).toEqual([])
      })
    })
    fc.assert(property, { numRuns: 200 })
  })
})
