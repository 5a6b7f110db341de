// For tests: what only a test does to a real cluster.
import type { TopicPartition } from '@weir/core'
import type { Admin } from 'kafkajs'
import { createKafka, openSocket, type ClientContext } from '../adapter/client-settings.ts'
import { NodePool } from '../adapter/node-pool.ts'
import { loadKafkajs } from '../patches/load-kafkajs.ts'
import { brokers, silentLog } from './dev-stack.ts'

export interface RealCluster {
  readonly admin: Admin
  createTopic(
    topic: string,
    options: { partitions: number; maxMessageBytes?: number; settings?: Record<string, string> },
  ): Promise<void>
  deleteTopic(topic: string): Promise<void>
  removeBelow(tp: TopicPartition, offset: number): Promise<void>
  evictMembers(group: string): Promise<void>
  close(): Promise<void>
}

export function testContext(): ClientContext {
  return {
    client: loadKafkajs(),
    options: { brokers: brokers(), clientId: 'weir-test', log: silentLog },
    socketFactory: openSocket,
    log: silentLog,
  }
}

export async function openRealCluster(): Promise<RealCluster> {
  const context = testContext()
  const admin = createKafka(context).admin()
  const nodes = new NodePool(context)
  await admin.connect()
  return {
    admin,
    createTopic: async (topic, { partitions, maxMessageBytes, settings = {} }) => {
      const entries = Object.entries({
        'message.timestamp.type': 'LogAppendTime',
        ...(maxMessageBytes === undefined ? {} : { 'max.message.bytes': String(maxMessageBytes) }),
        ...settings,
      })
      const configEntries = entries.map(([name, value]) => ({ name, value }))
      await admin.createTopics({ waitForLeaders: true, topics: [{ topic, numPartitions: partitions, configEntries }] })
    },
    deleteTopic: async topic => {
      await admin.deleteTopics({ topics: [topic] })
    },
    removeBelow: async ({ topic, partition }, offset) => {
      // kafkajs finds the leader only of topics it has asked about before.
      await admin.fetchTopicOffsets(topic)
      await admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: String(offset) }] })
    },
    evictMembers: async group => {
      const { groups } = await admin.describeGroups([group])
      const coordinator = await nodes.node(await nodes.coordinator(group))
      for (const { memberId } of groups[0]?.members ?? []) await coordinator.leaveGroup({ groupId: group, memberId })
    },
    close: async () => {
      await admin.disconnect()
      await nodes.close()
    },
  }
}
