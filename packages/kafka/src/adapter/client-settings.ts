// Every kafkajs setting is given here (R10): its defaults are a one-second connection time-out, topics created on demand and
// five slow retries.
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Log } from '@weir/core'
import type { ISocketFactory, Kafka, KafkaConfig, RetryOptions, logCreator } from 'kafkajs'
import type { Cluster, KafkajsClient } from '../patches/kafkajs-client.ts'
import { connectionTimeoutMs, defaultRequestTimeoutMs, type BrokerOptions } from './broker-options.ts'
import { kafkajsLogCreator, logLevel } from './kafkajs-log.ts'

export interface ClientContext {
  readonly client: KafkajsClient
  readonly options: BrokerOptions
  readonly socketFactory: ISocketFactory
  readonly log: Log
}

const keepAliveMs = 30_000

/** Connects, metadata and coordinators. */
const clusterRetry: RetryOptions = {
  initialRetryTime: 50,
  factor: 0.2,
  multiplier: 2,
  maxRetryTime: 1_000,
  retries: 6,
}
/**
 * Produce inside transactions: the first AddPartitions after a commit is refused until the markers of the last one are written,
 * a few milliseconds; the default of 300 ms would be most of a transaction's time.
 */
export const produceRetry: RetryOptions = {
  initialRetryTime: 5,
  factor: 0.2,
  multiplier: 1.5,
  maxRetryTime: 500,
  retries: 40,
}

/** Publishing: few tries inside kafkajs, since the lane tries again itself with a new producer. */
export const publishRetry: RetryOptions = {
  initialRetryTime: 20,
  factor: 0.2,
  multiplier: 2,
  maxRetryTime: 500,
  retries: 4,
}

export const openSocket: ISocketFactory = ({ host, port, ssl, onConnect }) => {
  const tlsOptions = typeof ssl === 'object' ? ssl : {}
  const socket: Socket = ssl
    ? connectTls({ host, port, ...(isIP(host) ? {} : { servername: host }), ...tlsOptions }, onConnect)
    : connectTcp({ host, port }, onConnect)
  socket.setNoDelay(true)
  socket.setKeepAlive(true, keepAliveMs)
  return socket as ReturnType<ISocketFactory>
}

function commonSettings(context: ClientContext) {
  const { options } = context
  return {
    brokers: [...options.brokers],
    clientId: options.clientId,
    socketFactory: context.socketFactory,
    connectionTimeout: connectionTimeoutMs,
    authenticationTimeout: connectionTimeoutMs,
    requestTimeout: options.requestTimeoutMs ?? defaultRequestTimeoutMs,
    enforceRequestTimeout: true,
    retry: clusterRetry,
    ...(options.tls ? { ssl: true } : {}),
    ...(options.sasl ? { sasl: options.sasl as NonNullable<KafkaConfig['sasl']> } : {}),
  }
}

const creatorOf = (context: ClientContext): logCreator => kafkajsLogCreator(context.log)

/** A kafkajs client of its own: producers, admin and readers share no state through it. */
export function createKafka(context: ClientContext): Kafka {
  return new context.client.kafkajs.Kafka({ ...commonSettings(context), logLevel, logCreator: creatorOf(context) })
}

/** kafkajs' cluster object: used only to build connections; what it knows of topics is not used. */
export function createCluster(context: ClientContext): Cluster {
  return new context.client.Cluster({
    ...commonSettings(context),
    logger: createLogger(context),
    metadataMaxAge: 300_000,
    allowAutoTopicCreation: false,
    maxInFlightRequests: null,
  })
}

export function createLogger(context: ClientContext) {
  return context.client.createLogger({ level: logLevel, logCreator: creatorOf(context) })
}
