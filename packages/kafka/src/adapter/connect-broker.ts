import type { Broker, PublisherOptions } from '@weir/core'
import type { Admin, ISocketFactory } from 'kafkajs'
import type { KafkajsClient } from '../patches/kafkajs-client.ts'
import { loadKafkajs } from '../patches/load-kafkajs.ts'
import { allRules, type AdapterRules } from './adapter-rules.ts'
import { KafkajsBrokerAdmin } from './broker-admin.ts'
import type { BrokerOptions } from './broker-options.ts'
import { createKafka, openSocket, type ClientContext } from './client-settings.ts'
import { GroupMembership } from './group-membership.ts'
import { brokerError } from './kafkajs-errors.ts'
import { KafkajsLogReader } from './log-reader.ts'
import { NodePool } from './node-pool.ts'
import { KafkajsPartitionWriter } from './partition-writer.ts'
import { KafkajsPublisher } from './publisher.ts'
import { TopicDirectory } from './topic-directory.ts'

/** What tests put in the place of the real thing. */
export interface BrokerInternals {
  readonly client?: KafkajsClient
  readonly socketFactory?: ISocketFactory
  readonly rules?: Partial<AdapterRules>
  /** How long a record is tried before its publish fails, milliseconds. */
  readonly deliveryTimeoutMs?: number
}

/** kafkajs behind the broker port. Connects when first used; `close` closes what was opened through it. */
export function connectBroker(options: BrokerOptions): Broker {
  return connectKafkajsBroker(options, {})
}

export function connectKafkajsBroker(options: BrokerOptions, internals: BrokerInternals): Broker {
  const context: ClientContext = {
    client: internals.client ?? loadKafkajs(),
    options,
    socketFactory: internals.socketFactory ?? openSocket,
    log: options.log.child({ component: 'kafka' }),
  }
  const nodes = new NodePool(context)
  const admin = lazyAdmin(context)
  const directory = new TopicDirectory(nodes, admin.get)
  const opened = new Set<() => Promise<void>>([admin.close, () => nodes.close()])
  const writing = { ...context, directory, opened, rules: { ...allRules, ...internals.rules } }
  const track = <T>(value: T, close: () => Promise<void>): T => {
    opened.add(close)
    return value
  }
  return {
    admin: new KafkajsBrokerAdmin(nodes, directory, context.client),
    openReader: () => {
      const reader = new KafkajsLogReader(new NodePool(context), context.client)
      return Promise.resolve(track(reader, () => reader.close()))
    },
    openPublisher: (publisherOptions?: PublisherOptions) => {
      const { deliveryTimeoutMs } = internals
      const publisher = new KafkajsPublisher(writing, {
        ...publisherOptions,
        ...(deliveryTimeoutMs && { deliveryTimeoutMs }),
      })
      return Promise.resolve(track(publisher, () => publisher.close()))
    },
    openWriter: writerOptions => KafkajsPartitionWriter.open(writing, writerOptions),
    join: async request => {
      const membership = await GroupMembership.join(context, request)
      return track(membership, () => membership.leave())
    },
    close: async () => {
      const closing = [...opened].reverse()
      opened.clear()
      for (const close of closing) {
        await close().catch((error: unknown) => context.log.warn({ err: error }, 'closing a part of the broker failed'))
      }
    },
  }
}

/** kafkajs' admin client, connected when first asked for. */
function lazyAdmin(context: ClientContext) {
  let connecting: Promise<Admin> | null = null
  const connect = async () => {
    const admin = createKafka(context).admin()
    try {
      await admin.connect()
      return admin
    } catch (error) {
      connecting = null
      throw brokerError('accept the admin connection', error)
    }
  }
  return {
    get: () => (connecting ??= connect()),
    close: async () => {
      const admin = await connecting
      connecting = null
      await admin?.disconnect()
    },
  }
}
