import { topicNames } from '@weir/core'
import { connectBroker, runStage } from '@weir/kafka'
import { assertMigrated, createOwnerStore, openDatabase } from '@weir/postgres'
import {
  createFaultPoint,
  createStageObserver,
  loadConfiguration,
  runService,
  settingsForLog,
  startAdminServer,
  type ServiceContext,
} from '@weir/runtime'
import { assemble } from './adapters/assemble.ts'
import { startApi } from './adapters/http-api.ts'
import { configSchema, readConfig } from './config.ts'

runService('policy', start)

async function start(context: ServiceContext): Promise<void> {
  const { env, log, metrics, lifecycle, clock } = context
  const settings = readConfig(env)
  log.info({ settings: settingsForLog(configSchema, settings) }, 'settings')
  const db = openDatabase({ url: settings.DATABASE_URL, applicationName: 'weir-policy' })
  lifecycle.onStop('postgres', () => db.close())
  db.onError(error => log.warn({ err: error }, 'a Postgres connection broke'))
  await assertMigrated(db)
  const broker = connectBroker({ brokers: settings.WEIR_KAFKA_BROKERS, clientId: settings.WEIR_INSTANCE_ID, log })
  lifecycle.onStop('kafka', () => broker.close())
  const faultPoint = createFaultPoint(env)
  const topics = topicNames(settings.WEIR_TOPIC_PREFIX)
  const publisher = await broker.openPublisher()
  lifecycle.onStop('publisher', () => publisher.close())
  const configuration = await loadConfiguration(settings.WEIR_CONFIG, env, { secretsOf: ['agents'] })
  const { handler, intake } = await assemble(context, settings, { db, publisher, configuration, faultPoint })
  const stage = await runStage({
    stage: 'policy',
    group: `${settings.WEIR_TOPIC_PREFIX}policy`,
    transactionalIdPrefix: `${settings.WEIR_TOPIC_PREFIX}policy.`,
    inputs: [topics.events, topics.released, topics.outcomes],
    ownOutputs: [topics.decisions],
    broker,
    owners: createOwnerStore(db),
    handler,
    log,
    clock,
    observer: createStageObserver(metrics),
    faultPoint,
    maxBatchRecords: settings.WEIR_POLICY_BATCH_RECORDS,
    sessionTimeoutMs: settings.WEIR_GROUP_SESSION_TIMEOUT_MS,
  })
  lifecycle.onStop('stage', () => stage.stop())
  db.onError(() =>
    stage.storeLost(
      'a connection to Postgres was lost: it may come back older, so rows and offsets are compared again',
    ),
  )
  const { WEIR_HTTP_HOST, WEIR_HTTP_PORT } = settings
  const { agents } = configuration
  const api = await startApi({ host: WEIR_HTTP_HOST, port: WEIR_HTTP_PORT, agents, intake, log })
  lifecycle.onStop('api', () => api.close())
  const health = { live: () => stage.live(), ready: () => (lifecycle.stopping ? 'stopping' : stage.ready()) }
  const { WEIR_ADMIN_HOST: host, WEIR_ADMIN_PORT: port } = settings
  const admin = await startAdminServer({ host, port, health, metrics, log })
  lifecycle.onStop('admin', () => admin.close())
}
