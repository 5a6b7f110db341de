import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { filterAbortedMessages } from './abort-filter.ts'

const record = (offset: number, producerId: string, key = 'k') => ({
  offset: String(offset),
  key: Buffer.from(key),
  isControlRecord: false,
  batchContext: { producerId, inTransaction: true },
})
const marker = (offset: number, producerId: string, type: 'abort' | 'commit') => ({
  offset: String(offset),
  key: Buffer.from([0, 0, 0, type === 'abort' ? 0 : 1]),
  isControlRecord: true,
  batchContext: { producerId, inTransaction: true },
})
const visible = (messages: ReturnType<typeof record>[], aborted: [producerId: string, firstOffset: number][]) =>
  filterAbortedMessages({
    messages,
    abortedTransactions: aborted.map(([producerId, firstOffset]) => ({ producerId, firstOffset: String(firstOffset) })),
  })
    .filter(message => !message.isControlRecord)
    .map(message => Number(message.offset))

describe('abort filter', () => {
  it('hides both transactions when the second to start aborts first, so that the list is not in order of offsets', () => {
    const log = [record(0, 'a'), record(1, 'b'), marker(2, 'b', 'abort'), record(3, 'a'), marker(4, 'a', 'abort')]
    const list: [string, number][] = [
      ['b', 1],
      ['a', 0],
    ]
    expect(visible(log, list)).toEqual([])
  })

  it('opens every transaction that began before the first record of the fetch', () => {
    const log = [record(5, 'a'), record(6, 'b'), marker(7, 'a', 'abort'), marker(8, 'b', 'abort')]
    const list: [string, number][] = [
      ['a', 1],
      ['b', 2],
    ]
    expect(visible(log, list)).toEqual([])
  })

  it('is not fooled by a record whose key looks like an abort marker', () => {
    const log = [record(0, 'a', '\0\0\0\0'), record(1, 'a'), marker(2, 'a', 'abort'), record(3, 'a')]
    expect(visible(log, [['a', 0]])).toEqual([3])
  })

  it('does not take a commit marker for the end of an aborted transaction', () => {
    const log = [record(0, 'a'), marker(1, 'b', 'commit'), record(2, 'a'), marker(3, 'a', 'abort'), record(4, 'a')]
    expect(visible(log, [['a', 0]])).toEqual([4])
  })

  it('shows exactly the committed records of any interleaving of transactions, from any start', () => {
    const step = fc.record({ producer: fc.constantFrom('a', 'b', 'c'), end: fc.constantFrom('no', 'abort', 'commit') })
    const property = fc.property(fc.array(step, { maxLength: 40 }), fc.nat(40), (steps, from) => {
      const { log, aborted, committed } = play(steps as Step[])
      const fetched = log.filter(message => Number(message.offset) >= from)
      const list = aborted.filter(({ last }) => last >= from)
      const shown = visible(
        fetched,
        list.map(({ producer, first }) => [producer, first]),
      )
      expect(shown).toEqual(committed.filter(offset => offset >= from))
    })
    fc.assert(property, { numRuns: 300 })
  })
})

interface Step {
  readonly producer: string
  readonly end: 'no' | 'abort' | 'commit'
}

/** A partition's log as the broker would write it; transactions left open at the end are aborted. */
function play(steps: readonly Step[]) {
  const log: ReturnType<typeof record>[] = []
  const aborted: { producer: string; first: number; last: number }[] = []
  const committed: number[] = []
  const open = new Map<string, number[]>()
  const end = (producer: string, type: 'abort' | 'commit') => {
    const offsets = open.get(producer)
    if (!offsets) return
    open.delete(producer)
    log.push(marker(log.length, producer, type))
    if (type === 'commit') committed.push(...offsets)
    else aborted.push({ producer, first: offsets[0] ?? 0, last: log.length - 1 })
  }
  for (const { producer, end: type } of steps) {
    if (type !== 'no') {
      end(producer, type)
      continue
    }
    open.set(producer, [...(open.get(producer) ?? []), log.length])
    log.push(record(log.length, producer))
  }
  for (const producer of open.keys()) end(producer, 'abort')
  return { log, aborted, committed: committed.toSorted((x, y) => x - y) }
}
