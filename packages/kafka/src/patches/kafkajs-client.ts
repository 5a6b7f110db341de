// The parts of kafkajs 2.2.4's internals that the adapter uses, typed. Nothing of this leaves the package.
import type * as kafkajs from 'kafkajs'

/** What `connection.send` takes: an encoder that gives a kafkajs Encoder, and a decoder of the payload. */
export interface ProtocolRequest<Response> {
  readonly request: {
    readonly apiKey: number
    readonly apiVersion: number
    readonly apiName: string
    readonly encode: () => Promise<{ readonly buf: Buffer; readonly buffer: Buffer; size(): number }>
  }
  readonly response: {
    readonly decode: (payload: Buffer) => Promise<Response>
    readonly parse: (decoded: Response) => Promise<Response>
  }
  readonly logResponseError?: boolean
}

interface ConnectionPool {
  readonly host: string
  readonly port: number
  readonly rack: string | null
  send<Response>(request: ProtocolRequest<Response>): Promise<Response>
  destroy(): Promise<void>
}

export interface FetchedPartition {
  readonly partition: number
  readonly errorCode: number
  readonly highWatermark: string
  readonly lastStableOffset: string
  /** The log start offset, under kafkajs' name for it. */
  readonly lastStartOffset: string
  readonly abortedTransactions: readonly { readonly producerId: string; readonly firstOffset: string }[]
  readonly messages: readonly FetchedMessage[]
}

export interface FetchedMessage {
  readonly offset: string
  readonly timestamp: string
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: readonly (readonly [string, Buffer])[]
  readonly isControlRecord: boolean
}

interface GroupMember {
  readonly memberId: string
  readonly memberMetadata: Buffer
}

/** One node of the cluster. */
export interface Broker {
  readonly nodeId: number
  readonly connectionPool: ConnectionPool
  isConnected(): boolean
  connect(): Promise<void>
  disconnect(): Promise<void>
  fetch(request: {
    readonly isolationLevel: 0 | 1
    readonly maxWaitTime: number
    readonly minBytes: number
    readonly maxBytes: number
    readonly topics: readonly {
      readonly topic: string
      readonly partitions: readonly {
        readonly partition: number
        readonly fetchOffset: string
        readonly maxBytes: number
      }[]
    }[]
  }): Promise<{
    readonly responses: readonly { readonly topicName: string; readonly partitions: readonly FetchedPartition[] }[]
  }>
  listOffsets(request: {
    readonly isolationLevel: 0 | 1
    readonly topics: readonly {
      readonly topic: string
      readonly partitions: readonly { readonly partition: number; readonly timestamp: number }[]
    }[]
  }): Promise<{
    readonly responses: readonly {
      readonly topic: string
      readonly partitions: readonly { readonly partition: number; readonly offset: string }[]
    }[]
  }>
  findGroupCoordinator(request: { readonly groupId: string; readonly coordinatorType: number }): Promise<{
    readonly coordinator: { readonly nodeId: number; readonly host: string; readonly port: number }
  }>
  joinGroup(request: {
    readonly groupId: string
    readonly sessionTimeout: number
    readonly rebalanceTimeout: number
    readonly memberId: string
    readonly groupProtocols: readonly { readonly name: string; readonly metadata: Buffer }[]
  }): Promise<{
    readonly generationId: number
    readonly leaderId: string
    readonly memberId: string
    readonly groupProtocol: string
    readonly members: readonly GroupMember[]
  }>
  syncGroup(request: {
    readonly groupId: string
    readonly generationId: number
    readonly memberId: string
    readonly groupAssignment: readonly { readonly memberId: string; readonly memberAssignment: Buffer }[]
  }): Promise<{ readonly memberAssignment: Buffer }>
  heartbeat(request: {
    readonly groupId: string
    readonly groupGenerationId: number
    readonly memberId: string
  }): Promise<unknown>
  leaveGroup(request: { readonly groupId: string; readonly memberId: string }): Promise<unknown>
}

/** What one client knows of its cluster; used for the connections it can build. */
export interface Cluster {
  readonly brokerPool: {
    /** Without versions: the connection asks the node for them. */
    readonly createBroker: (options: {
      readonly connectionPool: ConnectionPool
      readonly logger: kafkajs.Logger
      readonly nodeId: number
    }) => Broker
  }
  readonly connectionPoolBuilder: {
    build(destination: {
      readonly host: string
      readonly port: number
      readonly rack: string | null
    }): Promise<ConnectionPool>
  }
}

interface ClusterOptions {
  readonly logger: kafkajs.Logger
  readonly socketFactory: kafkajs.ISocketFactory
  readonly brokers: readonly string[]
  readonly clientId: string
  readonly connectionTimeout: number
  readonly authenticationTimeout: number
  readonly requestTimeout: number
  readonly enforceRequestTimeout: boolean
  readonly metadataMaxAge: number
  readonly retry: kafkajs.RetryOptions
  readonly allowAutoTopicCreation: boolean
  readonly maxInFlightRequests: number | null
  readonly ssl?: kafkajs.KafkaConfig['ssl'] | undefined
  readonly sasl?: kafkajs.KafkaConfig['sasl'] | undefined
}

/** What one fetch returned for one partition, with control and aborted records taken out of `messages`. */
interface Batch {
  readonly messages: readonly FetchedMessage[]
  readonly rawMessages: readonly FetchedMessage[]
  isEmptyIncludingFiltered(): boolean
  lastOffset(): string
}

export interface KafkajsClient {
  readonly kafkajs: typeof kafkajs
  readonly Cluster: new (options: ClusterOptions) => Cluster
  readonly Batch: new (topic: string, fetchedOffset: string, partition: FetchedPartition) => Batch
  readonly createLogger: (options: { level: number; logCreator: kafkajs.logCreator }) => kafkajs.Logger
  readonly createErrorFromCode: (code: number) => Error & { readonly type: string; readonly code: number }
}
