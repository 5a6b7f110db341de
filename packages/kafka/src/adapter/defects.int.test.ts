// The five defects of kafkajs that lose or repeat data silently, each on the real broker: with our rule or patch the promise holds,
// and with it switched off the bad outcome is there, so the scenario proves what it claims to.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Broker, OutRecord } from '@weir/core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { KafkajsClient } from '../patches/kafkajs-client.ts'
import { brokers, silentLog } from '../testing/dev-stack.ts'
import { apiKey, createFaultySockets } from '../testing/faulty-sockets.ts'
import { copyKafkajs, type KafkajsCopy } from '../testing/kafkajs-copy.ts'
import { openRealCluster, testContext, type RealCluster } from '../testing/real-cluster.ts'
import { createKafka } from './client-settings.ts'
import { connectKafkajsBroker, type BrokerInternals } from './connect-broker.ts'

let cluster: RealCluster
const cleanups: (() => Promise<void> | void)[] = []
const copies: KafkajsCopy[] = []
let count = 0

beforeAll(async () => {
  cluster = await openRealCluster()
})
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})
afterAll(async () => {
  copies.forEach(copy => copy.remove())
  await cluster.close()
})

function connect(internals: BrokerInternals = {}): Broker {
  const options = { brokers: brokers(), clientId: 'weir-test', log: silentLog }
  const broker = connectKafkajsBroker(options, internals)
  cleanups.push(() => broker.close())
  return broker
}

async function newTopic(settings: Record<string, string> = {}): Promise<string> {
  const topic = `defect.${process.pid}.${Date.now()}.${count++}`
  await cluster.createTopic(topic, { partitions: 3, settings })
  cleanups.push(() => cluster.deleteTopic(topic))
  return topic
}

function loadCopy(options: Parameters<KafkajsCopy['load']>[0]): KafkajsClient {
  const copy = copyKafkajs()
  copies.push(copy)
  return copy.load(options)
}

const out = (topic: string, text: string, partition = 0): OutRecord => ({
  topic,
  partition,
  key: Buffer.from(text),
  value: Buffer.from(text),
  headers: [],
})

/** Reads until the end of what is stable, or until a fetch does not move: then `isStuck`. */
async function read(
  broker: Broker,
  topic: string,
  options: { readonly partition?: number; readonly from?: number } = {},
) {
  const { partition = 0, from = 0 } = options
  const reader = await broker.openReader()
  const texts: string[] = []
  for (let position = from; ;) {
    const fetched = await reader.fetch({ topic, partition, fromOffset: position, maxWaitMs: 100 })
    texts.push(...fetched.records.map(({ key }) => key?.toString() ?? ''))
    const isAtEnd = fetched.nextOffset >= fetched.lastStableOffset
    const isStuck = !isAtEnd && fetched.nextOffset === position
    if (isAtEnd || isStuck) return { texts, isStuck, position: fetched.nextOffset }
    position = fetched.nextOffset
  }
}

describe('1: after a failed send, kafkajs gives the next record the sequence of the lost one', () => {
  /** Publishes `second` after the publish of `first` was given up without an answer. */
  async function loseThenPublish(discardProducer: boolean) {
    const topic = await newTopic()
    const sockets = createFaultySockets()
    const broker = connect({ socketFactory: sockets.factory, deliveryTimeoutMs: 500, rules: { discardProducer } })
    const publisher = await broker.openPublisher()
    sockets.lose(apiKey.produce, 1_000)
    await expect(publisher.publish([out(topic, 'first')])).rejects.toMatchObject({ code: 'broker_unavailable' })
    sockets.lose(apiKey.produce, 0)
    expect(sockets.lost()).toBeGreaterThan(1)
    const acks = await publisher.publish([out(topic, 'second')])
    return { acks, texts: (await read(connect(), topic)).texts }
  }

  it('has what it acknowledged in the log', async () => {
    const { acks, texts } = await loseThenPublish(true)
    expect(texts).toContain('second')
    expect(texts[acks[0]?.offset ?? -1]).toBe('second')
  })

  it('without rule R1 acknowledges a record that the broker drops', async () => {
    const { acks, texts } = await loseThenPublish(false)
    expect(acks).toHaveLength(1)
    expect(texts).toEqual(['first'])
  })
})

/** Even, as 0 is: one request of the publisher holds both. */
const movedPartition = 2

/** The internals of kafkajs' cluster that decide where a partition is sent. */
interface ClusterInternals {
  findLeaderForPartitions(topic: string, partitions: readonly (number | string)[]): Record<string, number[]>
  findBroker(node: { readonly nodeId: string }): Promise<object>
  refreshMetadata(): Promise<void>
}

/** Partition 2 seems to live on another node, which then says that it moved to the node that already answered for partition 0. */
function withMovedLeader(): KafkajsClient {
  const elsewhere = '999'
  const movedError = Object.assign(new Error('this node is not the leader'), {
    name: 'KafkaJSProtocolError',
    type: 'NOT_LEADER_FOR_PARTITION',
    retriable: true,
  })
  return loadCopy({
    replace: {
      'src/cluster/index.js': original => {
        const Cluster = original as new (...args: unknown[]) => ClusterInternals
        return class extends Cluster {
          hasMoved = false

          override findLeaderForPartitions(topic: string, partitions: readonly (number | string)[]) {
            const leaders = super.findLeaderForPartitions(topic, partitions)
            if (this.hasMoved || !partitions.map(Number).includes(movedPartition)) return leaders
            const others = partitions.filter(partition => Number(partition) !== movedPartition)
            return { ...super.findLeaderForPartitions(topic, others), [elsewhere]: [movedPartition] }
          }

          override async findBroker(node: { readonly nodeId: string }) {
            if (node.nodeId !== elsewhere) return super.findBroker(node)
            const produce = async () => {
              await sleep(200) // the other node has answered by then
              this.hasMoved = true
              throw movedError
            }
            return { nodeId: elsewhere, produce }
          }
        }
      },
    },
  })
}

describe('2: after a leader moved, kafkajs resolves without having sent its partition', () => {
  const both = (topic: string) => [out(topic, 'p0', 0), out(topic, 'p2', movedPartition)]
  const inLog = async (topic: string) => {
    const broker = connect()
    const [first, moved] = [await read(broker, topic), await read(broker, topic, { partition: movedPartition })]
    return [first.texts, moved.texts]
  }

  it('publishes what was left out', async () => {
    const topic = await newTopic()
    const publisher = await connect({ client: withMovedLeader() }).openPublisher()
    expect(await publisher.publish(both(topic))).toEqual([
      { topic, partition: 0, offset: 0 },
      { topic, partition: movedPartition, offset: 0 },
    ])
    expect(await inLog(topic)).toEqual([['p0'], ['p2']])
  })

  it('without rule R3 acknowledges a publish that lacks a partition', async () => {
    const topic = await newTopic()
    const publisher = await connect({ client: withMovedLeader(), rules: { checkAcks: false } }).openPublisher()
    expect(await publisher.publish(both(topic))).toHaveLength(2)
    expect(await inLog(topic)).toEqual([['p0'], []])
  })

  it('does not commit a transaction that lacks a partition', async () => {
    const topic = await newTopic()
    const broker = connect({ client: withMovedLeader() })
    const writer = await broker.openWriter({ transactionalId: topic, group: topic })
    expect(await writer.run({ records: both(topic), positions: [] })).toMatchObject({ kind: 'unknown' })
    const again = await broker.openWriter({ transactionalId: topic, group: topic })
    await again.close()
    expect(await inLog(topic)).toEqual([[], []])
  })

  it('without rule R3 commits a transaction that lacks a partition', async () => {
    const topic = await newTopic()
    const broker = connect({ client: withMovedLeader(), rules: { checkAcks: false } })
    const writer = await broker.openWriter({ transactionalId: topic, group: topic })
    expect(await writer.run({ records: both(topic), positions: [] })).toEqual({ kind: 'committed' })
    expect(await inLog(topic)).toEqual([['p0'], []])
  })
})

describe('3: kafkajs shows records of aborted transactions', () => {
  /** Two transactions are open on one partition; the second to begin is aborted first. */
  async function interleaveAborts(): Promise<string> {
    const topic = await newTopic()
    const open = async (id: string) => {
      const sockets = createFaultySockets()
      const broker = connect({ socketFactory: sockets.factory })
      const writer = await broker.openWriter({ transactionalId: `${topic}.${id}`, group: topic })
      sockets.lose(apiKey.txnOffsetCommit, 1)
      const batch = { records: [out(topic, `aborted ${id}`)], positions: [{ topic, partition: 0, nextOffset: 1 }] }
      expect(await writer.run(batch)).toMatchObject({ kind: 'unknown' })
    }
    await open('a')
    await open('b')
    const broker = connect()
    for (const id of ['b', 'a']) await broker.openWriter({ transactionalId: `${topic}.${id}`, group: topic })
    const writer = await broker.openWriter({ transactionalId: `${topic}.c`, group: topic })
    expect(await writer.run({ records: [out(topic, 'committed')], positions: [] })).toEqual({ kind: 'committed' })
    return topic
  }

  it('shows the committed record only', async () => {
    const topic = await interleaveAborts()
    expect((await read(connect(), topic)).texts).toEqual(['committed'])
  })

  it('without the abort filter shows an aborted record', async () => {
    const topic = await interleaveAborts()
    const broker = connect({ client: loadCopy({ without: ['abort-filter'] }) })
    expect((await read(broker, topic)).texts).toEqual(['aborted a', 'committed'])
  })
})

describe('4: kafkajs never passes an empty batch of a compacted topic', () => {
  const segmentBytes = 1_048_576
  let topic: string
  let emptyOffset = -1

  /**
   * Two segments too large to be merged; the first ends with a record of another producer whose key the second holds again, so
   * that the cleaner leaves that producer's batch empty at the end of a segment.
   */
  beforeAll(async () => {
    topic = `defect.${process.pid}.${Date.now()}.compacted`
    await cluster.createTopic(topic, {
      partitions: 1,
      settings: {
        'cleanup.policy': 'compact',
        'segment.ms': '1000',
        'segment.bytes': String(segmentBytes),
        'min.cleanable.dirty.ratio': '0.0',
        'delete.retention.ms': '60000',
      },
    })
    const kafka = createKafka(testContext())
    const produce = async (records: { key: string; value: Buffer }[]) => {
      const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1, retry: { retries: 5 } })
      await producer.connect()
      const [answer] = await producer.send({ topic, messages: records })
      await producer.disconnect()
      return Number(answer?.baseOffset)
    }
    const filler = (key: string) => ({ key, value: Buffer.alloc(600_000) })
    await produce([filler('one')])
    emptyOffset = await produce([{ key: 'again', value: Buffer.from('old') }])
    await sleep(1_100) // segment.ms
    await produce([filler('two'), { key: 'again', value: Buffer.from('new') }])
    await sleep(1_100)
    await produce([{ key: 'last', value: Buffer.from('x') }])
  })
  afterAll(() => cluster.deleteTopic(topic))

  /** The cleaner runs in the background. */
  async function untilCompacted(broker: Broker): Promise<void> {
    const reader = await broker.openReader()
    for (const deadline = performance.now() + 60_000; performance.now() < deadline; await sleep(250)) {
      const { records } = await reader.fetch({ topic, partition: 0, fromOffset: emptyOffset, maxWaitMs: 50 })
      if (records[0]?.offset !== emptyOffset) return
    }
    throw new Error('the log cleaner did not remove the record within 60 s')
  }

  it('passes it', { timeout: 90_000 }, async () => {
    const broker = connect()
    await untilCompacted(broker)
    const { texts, isStuck } = await read(broker, topic, { from: emptyOffset })
    expect([texts, isStuck]).toEqual([['two', 'again', 'last'], false])
  })

  it('without the patch is stuck in front of it', { timeout: 90_000 }, async () => {
    await untilCompacted(connect())
    const broker = connect({ client: loadCopy({ without: ['empty-batch'] }) })
    expect(await read(broker, topic)).toEqual({ texts: ['one'], isStuck: true, position: emptyOffset })
  })
})

describe('5: offsets in transactions are not fenced by the generation of the group', () => {
  /** The last owner comes back, and writes the batch that the new owner has written. */
  async function comeBack(idOf: (owner: 'old' | 'new', topic: string) => string) {
    const topic = await newTopic()
    const broker = connect()
    const batch = { records: [out(topic, 'event')], positions: [{ topic, partition: 1, nextOffset: 1 }] }
    const old = await broker.openWriter({ transactionalId: idOf('old', topic), group: topic })
    const next = await broker.openWriter({ transactionalId: idOf('new', topic), group: topic })
    expect(await next.run(batch)).toEqual({ kind: 'committed' })
    return { result: await old.run(batch), texts: (await read(broker, topic)).texts }
  }

  it('is fenced by one transactional id per partition number', async () => {
    const { result, texts } = await comeBack((_owner, topic) => `${topic}.1`)
    expect([result.kind, texts]).toEqual(['fenced', ['event']])
  })

  it('without rule R2, one id per instance, writes every event twice', async () => {
    const { result, texts } = await comeBack((owner, topic) => `${topic}.${owner}`)
    expect([result.kind, texts]).toEqual(['committed', ['event', 'event']])
  })
})

describe('membership', () => {
  it('lives on without a fetch, longer than its session', { timeout: 30_000 }, async () => {
    const topic = await newTopic()
    const generations: number[] = []
    const membership = await connect().join({
      group: topic,
      topics: [topic],
      sessionTimeoutMs: 6_000,
      onAssigned: ({ generation }) => generations.push(generation),
      onLost: cause => {
        throw cause
      },
    })
    await sleep(8_000) // a session and two heartbeats
    await membership.prove()
    expect(generations).toEqual([1])
    await membership.leave()
  })
})
