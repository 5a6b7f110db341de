import { topicNames, type WeirConfiguration } from '@weir/core'
import { connectBroker, createCodec } from '@weir/kafka'
import { openDatabase } from '@weir/postgres'
import { createFaultPoint, newUuidV7, type ServiceContext } from '@weir/runtime'
import type { IngestSettings } from '../config.ts'
import { clientLookup } from '../domain/api-key.ts'
import { prepareSource } from '../domain/webhook-source.ts'
import type { IngestMetrics } from '../metrics.ts'
import { IngestService } from '../service.ts'
import { createClientIntake } from '../service/client-intake.ts'
import { createProviderIntake } from '../service/provider-intake.ts'
import { ReceiptBook } from '../service/receipts.ts'
import { startExpiry } from './expiry.ts'
import { openKafkaLogs, type KafkaLogs } from './kafka-event-log.ts'
import { createEdgeClaims } from './postgres-edge-claims.ts'
import { createEdgeCache } from './redis-edge-cache.ts'

/** Kafka and the schemas; each is closed when the process stops. */
export async function openLogs({ log, lifecycle }: ServiceContext, settings: IngestSettings): Promise<KafkaLogs> {
  const broker = connectBroker({ brokers: settings.WEIR_KAFKA_BROKERS, clientId: settings.WEIR_INSTANCE_ID, log })
  lifecycle.onStop('kafka', () => broker.close())
  const codec = await createCodec({ registryUrl: settings.WEIR_SCHEMA_REGISTRY_URL, log })
  const topics = topicNames(settings.WEIR_TOPIC_PREFIX)
  const logs = await openKafkaLogs({ broker, codec, topics, partitions: settings.WEIR_TOPIC_PARTITIONS, log })
  lifecycle.onStop('event log', () => logs.close())
  return logs
}

/** The service with its stores; each is closed when the process stops. */
export function assembleService(
  { env, log, lifecycle, clock }: ServiceContext,
  parts: {
    readonly settings: IngestSettings
    readonly configuration: WeirConfiguration
    readonly metrics: IngestMetrics
    readonly logs: KafkaLogs
  },
): IngestService {
  const { settings, configuration, metrics, logs } = parts
  const db = openDatabase({ url: settings.DATABASE_URL, applicationName: 'weir-ingest', statementTimeoutMs: 3_000 })
  lifecycle.onStop('postgres', () => db.close())
  db.onError(error => log.warn({ err: error }, 'a Postgres connection broke'))
  const claims = createEdgeClaims(db, settings.WEIR_INGEST_LEASE_MS)
  const cache = createEdgeCache({ url: settings.REDIS_URL, prefix: settings.WEIR_TOPIC_PREFIX, metrics, log })
  lifecycle.onStop('redis', () => cache.close())
  const expiry = startExpiry(claims, metrics, log)
  lifecycle.onStop('expiry', () => expiry.close())
  const receipts = new ReceiptBook({
    log: logs.receipts,
    clock,
    metrics,
    logger: log,
    flushMs: 100,
    maxWaiting: 20_000,
  })
  lifecycle.onStop('receipts', () => receipts.close(5_000))

  const shared = { log: logs.events, metrics, faultPoint: createFaultPoint(env) }
  const stormThreshold = settings.WEIR_INGEST_STORM_THRESHOLD
  const waitMs = settings.WEIR_INGEST_DUPLICATE_WAIT_MS
  return new IngestService({
    sources: new Map(configuration.sources.map(source => [source.name, prepareSource(source)])),
    clients: clientLookup(configuration.clients),
    providerIntake: createProviderIntake({ ...shared, clock, stormThreshold, stormLingerMs: 50 }),
    clientIntake: createClientIntake({ ...shared, claims, cache, lingerMs: 2, waitMs }),
    receipts,
    metrics,
    clock,
    newId: () => newUuidV7(clock),
    faultPoint: shared.faultPoint,
  })
}
