import type { OutRecord } from '@weir/core'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AckCheck } from './ack-check.ts'
import { PublishQueue, type Entry } from './publish-queue.ts'
import { batchOverheadBytes, recordBytes } from './record-size.ts'
import { maxRequestBytes, maxSliceRecords, planSends, sliceKey } from './send-plan.ts'

const out = (partition: number, valueBytes: number, topic = 't'): OutRecord => ({
  topic,
  partition,
  key: null,
  value: Buffer.alloc(valueBytes),
  headers: [],
})
const recordsOf = fc.array(fc.record({ topic: fc.constantFrom('t', 'u'), partition: fc.nat(2), bytes: fc.nat(900) }), {
  maxLength: 60,
})

describe('plan of requests', () => {
  it('sends every record once, in order per partition, within the limits of batch and request', () => {
    const property = fc.property(recordsOf, specs => {
      const records = specs.map(({ topic, partition, bytes }) => out(partition, bytes, topic))
      const requests = planSends(records, () => 2_000)
      for (const request of requests) {
        expect(new Set(request.map(sliceKey)).size).toBe(request.length)
        expect(request.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThanOrEqual(maxRequestBytes)
      }
      const slices = requests.flat()
      for (const { records: sent, bytes } of slices) {
        expect(bytes).toBe(sent.reduce((sum, record) => sum + recordBytes(record), batchOverheadBytes))
        expect(bytes).toBeLessThanOrEqual(2_000)
      }
      for (const key of new Set(records.map(sliceKey))) {
        const sent = slices.filter(slice => sliceKey(slice) === key).flatMap(slice => slice.records)
        expect(sent).toEqual(records.filter(record => sliceKey(record) === key))
      }
    })
    fc.assert(property, { numRuns: 200 })
  })

  it('puts at most 1,000 records of a partition into a request', () => {
    const requests = planSends(
      Array.from({ length: 2_001 }, () => out(0, 1)),
      () => 1_000_000,
    )
    expect(requests.map(([slice]) => slice?.records.length)).toEqual([maxSliceRecords, maxSliceRecords, 1])
  })

  it('splits a request over many partitions before it is too large for the broker', () => {
    const records = Array.from({ length: 10 }, (_, partition) => out(partition, 1_000_000))
    expect(planSends(records, () => 2_000_000).map(({ length }) => length)).toEqual([8, 2])
  })
})

describe('check of acknowledgements', () => {
  const answer = (partition: number, baseOffset: string) => ({ topicName: 't', partition, errorCode: 0, baseOffset })
  const slice = (partition: number, count: number) => ({
    topic: 't',
    partition,
    records: Array.from({ length: count }, () => out(partition, 1)),
    bytes: 0,
  })

  it('finds a partition that was not answered', () => {
    const { baseOffsets, faults } = new AckCheck().check([slice(0, 1), slice(1, 1)], [answer(0, '7')])
    expect([...baseOffsets]).toEqual([['t/0', 7]])
    expect(faults).toEqual(['t/1 was not acknowledged'])
  })

  it('finds an offset that did not grow', () => {
    const acks = new AckCheck()
    expect(acks.check([slice(0, 3)], [answer(0, '7')]).faults).toEqual([])
    expect(acks.check([slice(0, 1)], [answer(0, '9')]).faults).toEqual([
      't/0 was acknowledged at 9, below 10: taken for a repeat',
    ])
    expect(acks.check([slice(0, 1)], [answer(0, '10')]).faults).toEqual([])
    expect(acks.check([slice(0, 1)], [answer(0, 'NaN')]).faults).toHaveLength(1)
  })
})

describe('queue of a lane', () => {
  const entry = (partition: number, bytes = 100): Entry => ({
    record: out(partition, bytes),
    bytes,
    maxBatchBytes: 1_000,
    deadlineMs: 0,
    acked: () => undefined,
    failed: () => undefined,
  })
  const taken = (queue: PublishQueue, single = false) =>
    queue.take(single).map(({ partition, entries }) => [partition, entries.length])

  it('takes the head of each partition, within the limit of a batch, until nothing waits', () => {
    const queue = new PublishQueue()
    for (let i = 0; i < 12; i++) queue.add(entry(i % 2, i % 2 === 0 ? 400 : 10))
    expect([taken(queue), queue.size]).toEqual([
      [
        [0, 2],
        [1, 6],
      ],
      4,
    ])
    expect([taken(queue), taken(queue), taken(queue), queue.size]).toEqual([[[0, 2]], [[0, 2]], [], 0])
  })

  it('puts back at the head, and takes a limited partition alone', () => {
    const queue = new PublishQueue()
    const [first, second, third] = [entry(0), entry(0), entry(0)]
    queue.add(first)
    queue.add(second)
    const [slice] = queue.take(false)
    queue.add(third)
    queue.add(entry(1))
    if (!slice) throw new Error('nothing was taken')
    queue.putBack(slice)
    queue.limit(slice, 1)
    expect([queue.isLimited(), queue.size]).toEqual([true, 4])
    const [alone] = queue.take(true)
    expect(alone?.entries).toEqual([first])
    queue.unlimit(slice)
    expect(queue.isLimited()).toBe(false)
    const rest = queue.take(false).find(({ partition }) => partition === 0)
    expect(rest?.entries).toEqual([second, third])
  })
})
