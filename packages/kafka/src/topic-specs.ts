// Topics and their settings, as data.
import { agentTopic, type TopicNames } from '@weir/core'

/** A topic as it must be. Settings that are not named are the broker's business. */
export interface TopicSpec {
  readonly topic: string
  readonly partitions: number
  readonly replicationFactor: number
  readonly settings: Readonly<Record<string, string>>
}

export interface TopicSpecOptions {
  /** Partitions of every topic of the flow; never changed in place. `control` has one. */
  readonly partitions: number
  /** 1 for a local stack, 3 in production. */
  readonly replicationFactor: number
  /** 1 for a local stack, 2 in production. */
  readonly minInsyncReplicas: number
  /** Names of all agents; each has a topic of its own. */
  readonly agents: readonly string[]
}

const dayMs = 86_400_000
const mebibyte = 1_048_576
const days = (count: number) => String(count * dayMs)

/**
 * What an event may grow by on its way is why the limits rise: a stage adds headers, a parked record carries its reasons. A record
 * that was accepted must fit wherever it can end.
 */
const maxBytes = {
  small: mebibyte,
  raw: 2 * mebibyte,
  event: 2.25 * mebibyte,
  agent: 2.5 * mebibyte,
  parked: 3 * mebibyte,
}

const deleted = (retentionDays: number): Record<string, string> => ({
  'cleanup.policy': 'delete',
  'retention.ms': days(retentionDays),
  // Retention removes whole segments: a day's roll keeps it accurate to a day.
  'segment.ms': days(1),
  'segment.bytes': String(512 * mebibyte),
})
const forever: Record<string, string> = { ...deleted(1), 'retention.ms': '-1', 'segment.ms': days(7) }
const compacted = (policy: string): Record<string, string> => ({
  'cleanup.policy': policy,
  'segment.ms': days(1),
  'segment.bytes': String(128 * mebibyte),
  'delete.retention.ms': days(1),
  'max.compaction.lag.ms': days(7),
})

type FlowTopic = Exclude<keyof TopicNames, 'agentPrefix'>

const flow: Readonly<Record<FlowTopic, { readonly bytes: number; readonly settings: Record<string, string> }>> = {
  raw: { bytes: maxBytes.raw, settings: deleted(30) },
  receipts: { bytes: maxBytes.small, settings: deleted(30) },
  // Longer than the replay window of 30 days; a day's lag leaves what a take-over reads back uncompacted.
  dedupState: {
    bytes: maxBytes.small,
    settings: { ...compacted('compact,delete'), 'retention.ms': days(35), 'min.compaction.lag.ms': days(1) },
  },
  events: { bytes: maxBytes.event, settings: deleted(30) },
  // A deferral's decision carries the bytes that wait.
  decisions: { bytes: maxBytes.agent, settings: deleted(30) },
  // A Release carries the event's bytes.
  released: { bytes: maxBytes.agent, settings: deleted(30) },
  outcomes: { bytes: maxBytes.small, settings: deleted(30) },
  actions: { bytes: maxBytes.small, settings: deleted(30) },
  parked: { bytes: maxBytes.parked, settings: forever },
  // The audit sink must see each change before compaction forgets it.
  control: {
    bytes: maxBytes.small,
    settings: { ...compacted('compact'), 'min.compaction.lag.ms': days(2) },
  },
}

/** All topics of one installation. */
export function topicSpecs(names: TopicNames, options: TopicSpecOptions): TopicSpec[] {
  const spec = (topic: string, bytes: number, settings: Record<string, string>, partitions: number): TopicSpec => ({
    topic,
    partitions,
    replicationFactor: options.replicationFactor,
    settings: {
      'message.timestamp.type': 'LogAppendTime',
      // Never `producer`: a codec that the client does not have would stop the partition's readers.
      'compression.type': 'uncompressed',
      'max.message.bytes': String(bytes),
      'min.insync.replicas': String(options.minInsyncReplicas),
      'unclean.leader.election.enable': 'false',
      ...settings,
    },
  })
  const flowTopics = Object.keys(flow) as FlowTopic[]
  return [
    ...flowTopics.map(name =>
      spec(names[name], flow[name].bytes, flow[name].settings, name === 'control' ? 1 : options.partitions),
    ),
    ...options.agents.map(agent => spec(agentTopic(names, agent), maxBytes.agent, deleted(30), options.partitions)),
  ]
}
