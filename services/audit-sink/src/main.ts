import { agentTopic, topicNames } from '@weir/core'
import { connectBroker, createCodec, sleepUnlessAborted } from '@weir/kafka'
import { assertMigrated, openDatabase } from '@weir/postgres'
import {
  createFaultPoint,
  loadConfiguration,
  runService,
  settingsForLog,
  startAdminServer,
  type ServiceContext,
} from '@weir/runtime'
import { startApi } from './adapters/http-api.ts'
import { createAuditQueries } from './adapters/postgres-audit-queries.ts'
import { createAuditStore } from './adapters/postgres-audit-store.ts'
import { SingleWriter } from './adapters/single-writer.ts'
import { configSchema, readConfig } from './config.ts'
import { createSinkMetrics } from './metrics.ts'
import { AuditSink } from './service.ts'

runService('audit-sink', start)

async function start({ env, log, metrics, lifecycle, clock }: ServiceContext): Promise<void> {
  const settings = readConfig(env)
  log.info({ settings: settingsForLog(configSchema, settings) }, 'settings')
  const configuration = await loadConfiguration(settings.WEIR_CONFIG, env, { secretsOf: ['analysts'] })
  const topics = topicNames(settings.WEIR_TOPIC_PREFIX)
  const faultPoint = createFaultPoint(env)

  const db = openDatabase({ url: settings.DATABASE_URL, applicationName: 'weir-audit-sink', maxConnections: 3 })
  lifecycle.onStop('postgres', () => db.close())
  db.onError(error => log.warn({ err: error }, 'a Postgres connection broke'))
  const readerUrl = settings.WEIR_AUDIT_READER_DATABASE_URL
  const readerDb = openDatabase({ url: readerUrl, applicationName: 'weir-audit-api', maxConnections: 5 })
  lifecycle.onStop('postgres reader', () => readerDb.close())
  readerDb.onError(error => log.warn({ err: error }, 'a Postgres connection of the API broke'))
  await assertMigrated(db)
  const broker = connectBroker({ brokers: settings.WEIR_KAFKA_BROKERS, clientId: settings.WEIR_INSTANCE_ID, log })
  lifecycle.onStop('kafka', () => broker.close())
  const decoder = await createCodec({ registryUrl: settings.WEIR_SCHEMA_REGISTRY_URL, log })

  const { raw, receipts, events, decisions, released, outcomes, actions, parked, control } = topics
  const agents = configuration.agents.map(agent => agentTopic(topics, agent.name))
  const audited = [raw, receipts, events, decisions, released, outcomes, actions, parked, control, ...agents]
  const store = createAuditStore(db, faultPoint)
  const sink = new AuditSink({
    topics,
    audited,
    broker,
    store,
    decoder,
    clock,
    log,
    faultPoint,
    metrics: createSinkMetrics(metrics),
    sleep: sleepUnlessAborted,
  })
  const writer = new SingleWriter(signal => sink.run(signal))
  await writer.join({
    broker,
    group: `${settings.WEIR_TOPIC_PREFIX}audit-sink`,
    topic: topics.control,
    sessionTimeoutMs: settings.WEIR_GROUP_SESSION_TIMEOUT_MS,
    log,
  })
  lifecycle.onStop('writer', () => writer.stop())
  const { WEIR_HTTP_HOST, WEIR_HTTP_PORT, WEIR_ADMIN_HOST, WEIR_ADMIN_PORT } = settings
  const queries = createAuditQueries(readerDb)
  const api = await startApi({
    host: WEIR_HTTP_HOST,
    port: WEIR_HTTP_PORT,
    analysts: configuration.analysts,
    queries,
    log,
  })
  lifecycle.onStop('api', () => api.close())
  const health = {
    live: () => writer.live(),
    ready: () => (lifecycle.stopping ? 'stopping' : (writer.ready() ?? (writer.writes ? sink.ready() : null))),
  }
  const admin = await startAdminServer({ host: WEIR_ADMIN_HOST, port: WEIR_ADMIN_PORT, health, metrics, log })
  lifecycle.onStop('admin', () => admin.close())
}
