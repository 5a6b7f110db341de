import { describe, expect, it } from 'vitest'
import { Sequences } from './sequences.ts'

const batch = (baseSequence: number, epoch = 0) => ({ producerId: 7, epoch, baseSequence, count: 2 })

/** Takes batches in order; each is appended at ten times its first sequence. */
function taken(...baseSequences: readonly number[]): Sequences {
  const sequences = new Sequences()
  for (const baseSequence of baseSequences) sequences.remember(batch(baseSequence), baseSequence * 10)
  return sequences
}

describe('sequences of a producer in one partition', () => {
  it('let pass what follows, and refuse a gap', () => {
    expect(taken(0, 2).check(batch(4))).toEqual({ kind: 'append' })
    expect(taken(0, 2).check(batch(6))).toEqual({ kind: 'refused', code: 'out_of_order_sequence' })
  })

  it('tell a repeat among the last five batches, and no older one', () => {
    const six = taken(0, 2, 4, 6, 8, 10)
    expect(six.check(batch(2))).toEqual({ kind: 'known', baseOffset: 20 })
    expect(six.check(batch(0))).toEqual({ kind: 'refused', code: 'out_of_order_sequence' })
  })

  it('begin at 0 again with a higher epoch, and refuse a lower one', () => {
    const sequences = taken(0, 2)
    expect(sequences.check(batch(4, 1))).toMatchObject({ kind: 'refused' })
    expect(sequences.check(batch(0, 1))).toEqual({ kind: 'append' })
    sequences.remember(batch(0, 1), 40)
    expect(sequences.check(batch(2, 0))).toEqual({ kind: 'refused', code: 'invalid_producer_epoch' })
  })
})
