import { topicNames } from '@weir/core'
import { connectBroker, createCodec } from '@weir/kafka'
import { openDatabase } from '@weir/postgres'
import {
  createFaultPoint,
  loadConfiguration,
  newUuidV7,
  runService,
  settingsForLog,
  startAdminServer,
} from '@weir/runtime'
import type { ServiceContext } from '@weir/runtime'
import { startExpiry } from './adapters/expiry.ts'
import { startHttpServer } from './adapters/http-server.ts'
import { openKafkaLogs } from './adapters/kafka-event-log.ts'
import { createEdgeClaims } from './adapters/postgres-edge-claims.ts'
import { createEdgeCache } from './adapters/redis-edge-cache.ts'
import { configSchema, readConfig } from './config.ts'
import { clientLookup } from './domain/api-key.ts'
import { prepareSource } from './domain/webhook-source.ts'
import { createIngestMetrics } from './metrics.ts'
import { IngestService } from './service.ts'
import { createClientIntake } from './service/client-intake.ts'
import { createProviderIntake } from './service/provider-intake.ts'
import { ReceiptBook } from './service/receipts.ts'

runService('ingest', start)

async function start({ env, log, metrics: declared, lifecycle, clock }: ServiceContext): Promise<void> {
  const settings = readConfig(env)
  log.info({ settings: settingsForLog(configSchema, settings) }, 'settings')
  const configuration = await loadConfiguration(settings.WEIR_CONFIG, env, { secretsOf: ['sources', 'clients'] })
  const metrics = createIngestMetrics(declared)
  const faultPoint = createFaultPoint(env)
  const newId = (): string => newUuidV7(clock)

  const db = openDatabase({ url: settings.DATABASE_URL, applicationName: 'weir-ingest', statementTimeoutMs: 3_000 })
  lifecycle.onStop('postgres', () => db.close())
  db.onError(error => log.warn({ err: error }, 'a Postgres connection broke'))
  const claims = createEdgeClaims(db, settings.WEIR_INGEST_LEASE_MS)
  const cache = createEdgeCache({ url: settings.REDIS_URL, prefix: settings.WEIR_TOPIC_PREFIX, metrics, log })
  lifecycle.onStop('redis', () => cache.close())
  const broker = connectBroker({ brokers: settings.WEIR_KAFKA_BROKERS, clientId: settings.WEIR_INSTANCE_ID, log })
  lifecycle.onStop('kafka', () => broker.close())
  const codec = await createCodec({ registryUrl: settings.WEIR_SCHEMA_REGISTRY_URL, log })
  const topics = topicNames(settings.WEIR_TOPIC_PREFIX)
  const logs = await openKafkaLogs({ broker, codec, topics, partitions: settings.WEIR_TOPIC_PARTITIONS, log })
  lifecycle.onStop('event log', () => logs.close())
  const receipts = new ReceiptBook({
    log: logs.receipts,
    clock,
    metrics,
    logger: log,
    flushMs: 100,
    maxWaiting: 20_000,
  })
  lifecycle.onStop('receipts', () => receipts.close(5_000))
  const expiry = startExpiry(claims, metrics, log)
  lifecycle.onStop('expiry', () => expiry.close())

  const sources = new Map(configuration.sources.map(source => [source.name, prepareSource(source)]))
  const shared = { log: logs.events, metrics, faultPoint }
  const service = new IngestService({
    sources,
    clients: clientLookup(configuration.clients),
    providerIntake: createProviderIntake({
      ...shared,
      clock,
      stormThreshold: settings.WEIR_INGEST_STORM_THRESHOLD,
      stormLingerMs: 50,
    }),
    clientIntake: createClientIntake({
      ...shared,
      claims,
      cache,
      lingerMs: 2,
      waitMs: settings.WEIR_INGEST_DUPLICATE_WAIT_MS,
    }),
    receipts,
    metrics,
    clock,
    newId,
    faultPoint,
  })
  const limits = [...configuration.sources, ...configuration.clients].map(({ maxBodyBytes }) => maxBodyBytes)
  const server = await startHttpServer({
    service,
    metrics,
    clock,
    log,
    newId,
    host: settings.WEIR_HTTP_HOST,
    port: settings.WEIR_HTTP_PORT,
    maxBodyBytes: Math.max(1_024, ...limits),
    maxInFlight: settings.WEIR_INGEST_MAX_IN_FLIGHT,
    requestTimeoutMs: settings.WEIR_INGEST_REQUEST_TIMEOUT_MS,
  })
  lifecycle.onStop('http', async () => {
    server.turnAway()
    await server.close()
  })
  const health = { live: () => null, ready: () => (lifecycle.stopping ? 'stopping' : null) }
  const { WEIR_ADMIN_HOST: host, WEIR_ADMIN_PORT: port } = settings
  const admin = await startAdminServer({ host, port, health, metrics: declared, log })
  lifecycle.onStop('admin', () => admin.close())
}
