// What the publisher does about refusals that only the broker can make.
import type { OutRecord } from '@weir/core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { brokers, silentLog } from '../testing/dev-stack.ts'
import { openRealCluster, type RealCluster } from '../testing/real-cluster.ts'
import { connectBroker } from './connect-broker.ts'

describe('publisher on a real broker', () => {
  const broker = connectBroker({ brokers: brokers(), clientId: 'weir-test', log: silentLog })
  const topics: string[] = []
  let cluster: RealCluster

  beforeAll(async () => {
    cluster = await openRealCluster()
  })
  afterAll(async () => {
    await broker.close()
    for (const topic of topics) await cluster.deleteTopic(topic)
    await cluster.close()
  })

  async function newTopic(settings: Record<string, string>): Promise<string> {
    const topic = `publisher.${process.pid}.${Date.now()}.${topics.length}`
    await cluster.createTopic(topic, { partitions: 4, settings })
    topics.push(topic)
    return topic
  }

  const out = (topic: string, i: number, extra: Partial<OutRecord> = {}): OutRecord => ({
    topic,
    partition: i % 4,
    key: Buffer.from(String(i)),
    value: Buffer.from('v'),
    headers: [],
    ...extra,
  })

  it('fails alone a record that the broker refuses without saying which one it was', async () => {
    const topic = await newTopic({ 'cleanup.policy': 'compact' })
    const publisher = await broker.openPublisher({ lingerMs: 20 })
    const results = await Promise.allSettled(
      Array.from({ length: 40 }, (_, i) => publisher.publish([out(topic, i, i === 17 ? { key: null } : {})])),
    )
    const failed = results.flatMap((result, i) =>
      result.status === 'rejected' ? [{ i, reason: result.reason as unknown }] : [],
    )
    expect(failed).toMatchObject([
      { i: 17, reason: { code: 'topic_mismatch', context: { topic, type: 'INVALID_RECORD' } } },
    ])
    // Another partition of the same request may have been written twice: at least once is what is promised.
    const { endOffset } = await broker.admin.bounds({ topic, partition: 1 })
    expect(endOffset).toBe(9)
  })

  it('learns that a topic takes less than before, and fails alone what no longer fits', async () => {
    const topic = await newTopic({ 'max.message.bytes': '20000' })
    const publisher = await broker.openPublisher({ lingerMs: 20 })
    const large = (i: number) => out(topic, i, { value: Buffer.alloc(10_000) })
    await publisher.publish([large(0)])
    const topicResource = 2
    await cluster.admin.alterConfigs({
      validateOnly: false,
      resources: [{ type: topicResource, name: topic, configEntries: [{ name: 'max.message.bytes', value: '5000' }] }],
    })
    const [small, refused, other] = await Promise.allSettled([
      publisher.publish([out(topic, 0)]),
      publisher.publish([large(4)]),
      publisher.publish([out(topic, 8)]),
    ])
    expect(small).toMatchObject({ status: 'fulfilled' })
    expect(refused).toMatchObject({ status: 'rejected', reason: { code: 'record_too_large', context: { topic } } })
    expect(other).toMatchObject({ status: 'fulfilled' })
  })

  it('sends what waits before it closes, and takes nothing afterwards', async () => {
    const topic = await newTopic({})
    const publisher = await broker.openPublisher({ lingerMs: 200 })
    const published = publisher.publish([out(topic, 0), out(topic, 1)])
    await publisher.close()
    expect(await published).toHaveLength(2)
    await expect(publisher.publish([out(topic, 0)])).rejects.toMatchObject({ code: 'broker_unavailable' })
  })
})
