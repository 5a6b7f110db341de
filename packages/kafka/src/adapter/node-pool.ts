// Connections to the cluster's nodes, found through Metadata v12. kafkajs' own metadata keeps a list of wanted topics and fails
// as a whole when one of them is gone; here each request names its topics and gets an answer for each.
import type { Broker, Cluster } from '../patches/kafkajs-client.ts'
import { createCluster, createLogger, type ClientContext } from './client-settings.ts'
import { isNamed, protocolType } from './kafkajs-errors.ts'
import { metadataRequest, type ClusterMetadata, type NodeAddress } from './metadata-request.ts'

const groupCoordinator = 0

/** Errors after which another node, or the same one a little later, may answer. */
const movedTypes = new Set([
  'NOT_LEADER_FOR_PARTITION',
  'LEADER_NOT_AVAILABLE',
  'FENCED_LEADER_EPOCH',
  'UNKNOWN_LEADER_EPOCH',
  'REPLICA_NOT_AVAILABLE',
  'KAFKA_STORAGE_ERROR',
  'OFFSET_NOT_AVAILABLE',
  'UNKNOWN_TOPIC_OR_PARTITION',
  'UNKNOWN_TOPIC_ID',
  'NOT_COORDINATOR_FOR_GROUP',
  'GROUP_COORDINATOR_NOT_AVAILABLE',
  'GROUP_LOAD_IN_PROGRESS',
  'UNSTABLE_OFFSET_COMMIT',
  'REQUEST_TIMED_OUT',
  'NETWORK_EXCEPTION',
  'BROKER_NOT_AVAILABLE',
])
const connectionErrors = [
  'KafkaJSConnectionError',
  'KafkaJSConnectionClosedError',
  'KafkaJSRequestTimeoutError',
  'KafkaJSLockTimeout',
  'NodeUnknown',
]

/** Whether a later try, after asking for metadata again, may succeed. */
export function isPassing(error: unknown): boolean {
  const type = protocolType(error)
  if (type !== null) return movedTypes.has(type)
  return connectionErrors.some(name => isNamed(error, name))
}

class NodeUnknown extends Error {
  constructor(nodeId: number) {
    super(nodeId < 0 ? 'the partition has no leader just now' : `node ${nodeId} is not in the cluster's metadata`)
    this.name = 'NodeUnknown'
  }
}

export class NodePool {
  readonly #context: ClientContext
  readonly #cluster: Cluster
  readonly #addresses = new Map<number, NodeAddress>()
  readonly #shared = new Map<number, Broker>()
  readonly #disconnecting = new Set<Promise<void>>()
  #seed: Broker | null = null
  #seedTries = 0

  constructor(context: ClientContext) {
    this.#context = context
    this.#cluster = createCluster(context)
  }

  /** Asks any node about these topics, and remembers the addresses of all nodes. */
  async metadata(topics: readonly string[]): Promise<ClusterMetadata> {
    const broker = await this.#anyConnected()
    try {
      const metadata = await broker.connectionPool.send(metadataRequest(topics))
      for (const node of metadata.nodes) this.#addresses.set(node.nodeId, node)
      return metadata
    } catch (error) {
      this.drop(broker)
      throw error
    }
  }

  /** The shared connection to a node. */
  async node(nodeId: number): Promise<Broker> {
    const known = this.#shared.get(nodeId)
    if (known && this.#isAt(known, this.#addresses.get(nodeId))) return connected(known)
    if (known) this.drop(known)
    const broker = await this.#create(nodeId)
    this.#shared.set(nodeId, broker)
    return connected(broker)
  }

  /** A connection of its own, for requests that the node answers late: it answers one request per connection at a time. */
  async dedicated(nodeId: number): Promise<Broker> {
    return connected(await this.#create(nodeId))
  }

  async coordinator(group: string): Promise<number> {
    const broker = await this.#anyConnected()
    try {
      const { coordinator } = await broker.findGroupCoordinator({ groupId: group, coordinatorType: groupCoordinator })
      this.#addresses.set(coordinator.nodeId, { rack: null, ...coordinator })
      return coordinator.nodeId
    } catch (error) {
      if (protocolType(error) === null) this.drop(broker)
      throw error
    }
  }

  /** Forgets a connection that failed; it closes in the background. */
  drop(broker: Broker): void {
    if (this.#seed === broker) this.#seed = null
    if (this.#shared.get(broker.nodeId) === broker) this.#shared.delete(broker.nodeId)
    const closing = broker
      .disconnect()
      .catch((error: unknown) => this.#context.log.debug({ err: error }, 'closing a connection failed'))
      .finally(() => this.#disconnecting.delete(closing))
    this.#disconnecting.add(closing)
  }

  async close(): Promise<void> {
    if (this.#seed) this.drop(this.#seed)
    for (const broker of this.#shared.values()) this.drop(broker)
    while (this.#disconnecting.size > 0) await Promise.all(this.#disconnecting)
  }

  async #anyConnected(): Promise<Broker> {
    for (const broker of this.#shared.values()) if (broker.isConnected()) return connected(broker)
    if (this.#seed?.isConnected()) return connected(this.#seed)
    if (this.#seed) this.drop(this.#seed)
    const seed = await this.#connectSeed()
    this.#seed = seed
    return seed
  }

  async #connectSeed(): Promise<Broker> {
    const known = [...this.#addresses.values()]
    const tries = this.#context.options.brokers.length + known.length
    let lastError = new Error('there is no address to connect to')
    for (let i = 0; i < tries; i++) {
      // Bootstrap names first: an address in the metadata may be of a node that has moved.
      const turn = this.#seedTries++ % tries
      const address = known[turn - this.#context.options.brokers.length]
      const broker = await this.#build(address ?? this.#bootstrap(turn))
      try {
        return await connected(broker)
      } catch (error) {
        lastError = error instanceof Error ? error : new Error(String(error))
        this.drop(broker)
      }
    }
    throw lastError
  }

  #bootstrap(turn: number): NodeAddress {
    const text = this.#context.options.brokers[turn % this.#context.options.brokers.length] ?? ''
    const colon = text.lastIndexOf(':')
    return { nodeId: -1, host: text.slice(0, colon), port: Number(text.slice(colon + 1)), rack: null }
  }

  #create(nodeId: number): Promise<Broker> {
    const address = this.#addresses.get(nodeId)
    return address ? this.#build(address) : Promise.reject(new NodeUnknown(nodeId))
  }

  async #build(address: NodeAddress): Promise<Broker> {
    const { host, port, rack } = address
    const connectionPool = await this.#cluster.connectionPoolBuilder.build({ host, port, rack })
    const logger = createLogger(this.#context)
    return this.#cluster.brokerPool.createBroker({ connectionPool, logger, nodeId: address.nodeId })
  }

  #isAt(broker: Broker, address: NodeAddress | undefined): boolean {
    const { host, port } = broker.connectionPool
    return address?.host === host && address.port === port
  }
}

/** `isConnected` is true before the node has told its versions; `connect` waits for whoever is doing it. */
async function connected(broker: Broker): Promise<Broker> {
  await broker.connect()
  return broker
}
