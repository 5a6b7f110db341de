import { topicNames } from '@weir/core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { brokers, silentLog } from '../testing/dev-stack.ts'
import { openRealCluster, type RealCluster } from '../testing/real-cluster.ts'
import { topicSpecs } from '../topic-specs.ts'
import { ensureTopics } from './ensure-topics.ts'

describe('topics on a real broker', () => {
  const prefix = `ensure.${process.pid}.${Date.now()}.`
  const specs = topicSpecs(topicNames(prefix), {
    partitions: 2,
    replicationFactor: 1,
    minInsyncReplicas: 1,
    agents: ['ops'],
  })
  const options = { brokers: brokers(), clientId: 'weir-test', log: silentLog, specs }
  const [raw] = specs
  if (!raw) throw new Error('there are no specs')
  let cluster: RealCluster

  beforeAll(async () => {
    cluster = await openRealCluster()
  })
  afterAll(async () => {
    for (const { topic } of specs) await cluster.deleteTopic(topic)
    await cluster.close()
  })

  it('are created by several processes at once, and left alone afterwards', async () => {
    const all = await Promise.all([1, 2, 3, 4].map(() => ensureTopics(options)))
    expect(new Set(all.flatMap(({ created }) => created))).toEqual(new Set(specs.map(({ topic }) => topic)))
    expect(await ensureTopics(options)).toEqual({ created: [] })
  })

  it('that differ are named with setting, value and wanted value', async () => {
    const settings = { ...raw.settings, 'retention.ms': '5', 'cleanup.policy': 'compact,delete' }
    const wanted = [{ ...raw, partitions: 3, replicationFactor: 3, settings }]
    const { topic } = raw
    await expect(ensureTopics({ ...options, specs: wanted })).rejects.toMatchObject({
      code: 'topic_mismatch',
      context: {
        faults: [
          { topic, setting: 'partitions', value: '2', wanted: '3' },
          { topic, setting: 'replication.factor', value: '1', wanted: '3' },
          { topic, setting: 'cleanup.policy', value: 'delete', wanted: 'compact,delete' },
          { topic, setting: 'retention.ms', value: '2592000000', wanted: '5' },
        ],
      },
    })
  })

  it('with a setting the broker does not take are an error that names the topic', async () => {
    const topic = `${prefix}bad`
    const bad = [{ ...raw, topic, settings: { 'cleanup.policy': 'nonsense' } }]
    await expect(ensureTopics({ ...options, specs: bad })).rejects.toThrow(new RegExp(topic.replaceAll('.', '\\.')))
  })

  it('cannot be created while the broker is away', async () => {
    await expect(ensureTopics({ ...options, brokers: ['127.0.0.1:1'] })).rejects.toMatchObject({
      code: 'broker_unavailable',
    })
  })
})
