// Metadata v12, for the topic id (kafkajs ends at v6).
import type { ProtocolRequest } from '../patches/kafkajs-client.ts'
import { FlexibleReader, FlexibleWriter } from './flexible-protocol.ts'

export interface NodeAddress {
  readonly nodeId: number
  readonly host: string
  readonly port: number
  readonly rack: string | null
}

interface PartitionMetadata {
  readonly partition: number
  readonly leader: number
  readonly replicas: number
}

export interface TopicMetadata {
  readonly topic: string
  /** 0, or the protocol's code: 3 when the topic is missing, 29 when it may not be seen. */
  readonly errorCode: number
  readonly logId: string
  readonly partitions: readonly PartitionMetadata[]
  /** Null when the broker does not say. */
  readonly mayWrite: boolean | null
}

export interface ClusterMetadata {
  readonly nodes: readonly NodeAddress[]
  readonly topics: readonly TopicMetadata[]
}

const noTopicId = Buffer.alloc(16)
const writeOperation = 4
const operationsUnknown = -(2 ** 31)

export function metadataRequest(topics: readonly string[]): ProtocolRequest<ClusterMetadata> {
  return {
    request: { apiKey: 3, apiVersion: 12, apiName: 'Metadata', encode: () => Promise.resolve(encode(topics)) },
    response: { decode: payload => Promise.resolve(decode(payload)), parse: decoded => Promise.resolve(decoded) },
  }
}

function encode(topics: readonly string[]) {
  const writer = new FlexibleWriter().noTags()
  writer.array(topics, topic => writer.raw(noTopicId).string(topic).noTags())
  const allowAutoCreation = false
  const includeOperations = true
  return writer.boolean(allowAutoCreation).boolean(includeOperations).noTags().finish()
}

function decode(payload: Buffer): ClusterMetadata {
  const reader = new FlexibleReader(payload)
  reader.skipTags()
  reader.int32() // throttle time
  const nodes = reader.array(() => {
    const node = { nodeId: reader.int32(), host: reader.string() ?? '', port: reader.int32(), rack: reader.string() }
    reader.skipTags()
    return node
  })
  reader.string() // cluster id
  reader.int32() // controller id
  const topics = reader.array(() => decodeTopic(reader))
  return { nodes, topics }
}

function decodeTopic(reader: FlexibleReader): TopicMetadata {
  const errorCode = reader.int16()
  const topic = reader.string() ?? ''
  const logId = reader.uuid()
  reader.boolean() // internal
  const partitions = reader.array(() => {
    reader.int16() // error: a leader that is away shows as -1
    const partition = reader.int32()
    const leader = reader.int32()
    reader.int32() // leader epoch
    const replicas = reader.array(() => reader.int32()).length
    reader.array(() => reader.int32()) // in-sync replicas
    reader.array(() => reader.int32()) // offline replicas
    reader.skipTags()
    return { partition, leader, replicas }
  })
  const operations = reader.int32()
  reader.skipTags()
  const mayWrite = operations === operationsUnknown ? null : (operations & (1 << writeOperation)) !== 0
  return { topic, errorCode, logId, partitions, mayWrite }
}
