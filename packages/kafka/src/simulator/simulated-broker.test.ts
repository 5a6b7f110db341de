// What the simulator adds to the port: time that stands still, processes that freeze, and faults at named points.
import type { Assignment, OutRecord } from '@weir/core'
import { describe, expect, it } from 'vitest'
import { createManualScheduler } from './scheduler.ts'
import { createSimulatedBroker, type SimulatedBroker } from './simulated-broker.ts'
import { SimulatedCluster } from './simulated-cluster.ts'

function simulate() {
  const scheduler = createManualScheduler()
  const cluster = new SimulatedCluster(scheduler)
  cluster.createTopic({ topic: 't', partitions: 2 })
  return { scheduler, cluster, broker: createSimulatedBroker({ cluster }) }
}

const out = (text: string): OutRecord => ({
  topic: 't',
  partition: 0,
  key: null,
  value: Buffer.from(text),
  headers: [],
})
const positions = [{ topic: 't', partition: 0, nextOffset: 1 }]
const open = (broker: SimulatedBroker) => broker.openWriter({ transactionalId: 'id', group: 'g' })

async function texts(broker: SimulatedBroker): Promise<(string | undefined)[]> {
  const reader = await broker.openReader()
  const { records } = await reader.fetch({ topic: 't', partition: 0, fromOffset: 0, maxWaitMs: 0 })
  return records.map(({ value }) => value?.toString())
}

async function join(broker: SimulatedBroker) {
  const assignments: Assignment[] = []
  const membership = await broker.join({
    group: 'g',
    topics: ['t'],
    sessionTimeoutMs: 6_000,
    onAssigned: assignment => assignments.push(assignment),
    onLost: () => undefined,
  })
  return { membership, numbers: () => assignments.at(-1)?.numbers, assignments }
}

describe('simulated cluster', () => {
  it('lets a fetch wait in its own time only', async () => {
    const { scheduler, broker } = simulate()
    const reader = await broker.openReader()
    let answered = false
    const fetched = reader.fetch({ topic: 't', partition: 0, fromOffset: 0, maxWaitMs: 500 }).finally(() => {
      answered = true
    })
    await scheduler.advance(499)
    expect(answered).toBe(false)
    await scheduler.advance(1)
    expect(await fetched).toMatchObject({ records: [], nextOffset: 0 })
  })

  it('aborts a transaction after its time and fences whoever began it', async () => {
    const { scheduler, cluster, broker } = simulate()
    const writer = await open(broker)
    const held = cluster.faults.hold('id', 'commit')
    const result = writer.run({ records: [out('late')], positions })
    await held.reached
    await scheduler.advance(15_000)
    held.release()
    expect(await result).toEqual({ kind: 'fenced' })
    expect(await texts(broker)).toEqual([])
    expect(cluster.log({ topic: 't', partition: 0 })).toMatchObject({ lastStableOffset: 2, endOffset: 2 })
  })

  it('fences a writer that was frozen inside its transaction', async () => {
    const { cluster, broker } = simulate()
    const zombie = await open(broker)
    const held = cluster.faults.hold('id', 'offsets')
    const result = zombie.run({ records: [out('zombie')], positions })
    await held.reached
    const next = await open(createSimulatedBroker({ cluster }))
    expect(await broker.admin.committed('g', positions)).toEqual([])
    held.release()
    expect(await result).toEqual({ kind: 'fenced' })
    expect(await next.run({ records: [out('next')], positions })).toEqual({ kind: 'committed' })
    expect(await texts(broker)).toEqual(['next'])
  })

  it('does nothing when the request was lost, and all when only the answer was', async () => {
    for (const [strike, expected] of [
      ['lost-request', []],
      ['lost-answer', ['once']],
    ] as const) {
      const { cluster, broker } = simulate()
      const writer = await open(broker)
      cluster.faults.strikeNext('commit', strike)
      expect(await writer.run({ records: [out('once')], positions })).toMatchObject({ kind: 'unknown' })
      await open(broker)
      expect(await texts(broker)).toEqual(expected)
      expect(await broker.admin.committed('g', positions)).toHaveLength(expected.length)
    }
  })

  it('refuses what a test says it refuses, until it no longer says so', async () => {
    const { cluster, broker } = simulate()
    cluster.faults.refuse('t', 'topic_denied')
    const writer = await open(broker)
    const result = await writer.run({ records: [out('a')], positions })
    expect(result).toMatchObject({ kind: 'refused', topic: 't', code: 'topic_denied' })
    cluster.faults.refuse('t', null)
    expect(await (await open(broker)).run({ records: [out('a')], positions })).toEqual({ kind: 'committed' })
  })

  it('fails every call while it is down', async () => {
    const { cluster, broker } = simulate()
    const publisher = await broker.openPublisher()
    cluster.faults.setDown(true)
    const unavailable = { code: 'broker_unavailable' }
    await expect(publisher.publish([out('a')])).rejects.toMatchObject(unavailable)
    await expect(broker.admin.describe(['t'])).rejects.toMatchObject(unavailable)
    await expect(open(broker)).rejects.toMatchObject(unavailable)
    cluster.faults.setDown(false)
    expect(await publisher.publish([out('a')])).toHaveLength(1)
  })

  it('gives the numbers of a process frozen past its session to others, and takes it back when it runs again', async () => {
    const { scheduler, cluster, broker } = simulate()
    const other = createSimulatedBroker({ cluster })
    const [frozen, awake] = [await join(broker), await join(other)]
    expect([frozen.numbers(), awake.numbers()]).toEqual([[0], [1]])
    const thaw = broker.freeze()
    const proof = frozen.membership.prove()
    await scheduler.advance(5_999)
    expect(awake.numbers()).toEqual([1])
    await scheduler.advance(1)
    expect([frozen.numbers(), awake.numbers()]).toEqual([[0], [0, 1]])
    thaw()
    expect([frozen.numbers(), awake.numbers()]).toEqual([[1], [0]])
    expect(frozen.assignments.map(({ numbers }) => numbers)).toEqual([[0, 1], [0], [], [1]])
    await proof
  })

  it('loses the end of a log, and its start, as a broken disk and retention do', async () => {
    const { cluster, broker } = simulate()
    const publisher = await broker.openPublisher()
    await publisher.publish(['a', 'b', 'c'].map(out))
    const log = cluster.log({ topic: 't', partition: 0 })
    log.removeFrom(2)
    expect(await texts(broker)).toEqual(['a', 'b'])
    log.removeBelow(1)
    expect(await broker.admin.bounds({ topic: 't', partition: 0 })).toEqual({ startOffset: 1, endOffset: 2 })
    await expect(texts(broker)).rejects.toMatchObject({ code: 'log_out_of_range' })
  })

  it('keeps offsets when it compacts, and a reader passes the gap', async () => {
    const { cluster, broker } = simulate()
    const publisher = await broker.openPublisher()
    const keyed = (value: string) => ({ ...out(value), key: Buffer.from('k') })
    await publisher.publish(['1', '2', '3'].map(keyed))
    cluster.log({ topic: 't', partition: 0 }).compact()
    const reader = await broker.openReader()
    const fetched = await reader.fetch({ topic: 't', partition: 0, fromOffset: 0 })
    expect([fetched.records.map(({ offset }) => offset), fetched.nextOffset]).toEqual([[2], 3])
  })
})
