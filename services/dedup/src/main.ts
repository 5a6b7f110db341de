import { topicNames } from '@weir/core'
import { connectBroker, createCodec, runStage } from '@weir/kafka'
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
import { createDedupCodec } from './adapters/codec.ts'
import { createClaimLedger } from './adapters/postgres-claim-ledger.ts'
import { configSchema, readConfig } from './config.ts'
import { createSourceRules } from './domain/source-rules.ts'
import { createDedupMetrics } from './metrics.ts'
import { DedupService } from './service.ts'

runService('dedup', start)

async function start({ env, log, metrics, lifecycle, clock }: ServiceContext): Promise<void> {
  const settings = readConfig(env)
  log.info({ settings: settingsForLog(configSchema, settings) }, 'settings')
  const configuration = await loadConfiguration(settings.WEIR_CONFIG, env, { secretsOf: [] })
  const topics = topicNames(settings.WEIR_TOPIC_PREFIX)
  const faultPoint = createFaultPoint(env)

  const db = openDatabase({ url: settings.DATABASE_URL, applicationName: 'weir-dedup' })
  lifecycle.onStop('postgres', () => db.close())
  db.onError(error => log.warn({ err: error }, 'a Postgres connection broke'))
  await assertMigrated(db)
  const broker = connectBroker({ brokers: settings.WEIR_KAFKA_BROKERS, clientId: settings.WEIR_INSTANCE_ID, log })
  lifecycle.onStop('kafka', () => broker.close())
  const codec = createDedupCodec(await createCodec({ registryUrl: settings.WEIR_SCHEMA_REGISTRY_URL, log }))

  const handler = new DedupService({
    topics,
    partitions: settings.WEIR_TOPIC_PARTITIONS,
    ledger: createClaimLedger(db),
    codec,
    sources: createSourceRules(configuration),
    clock,
    metrics: createDedupMetrics(metrics),
    cacheEntries: settings.WEIR_DEDUP_CACHE_ENTRIES,
    // weir.raw takes 2 MiB; what is added on the way must fit.
    maxEventBytes: 2 * 1_048_576 - 4_096,
    faultPoint,
  })
  const stage = await runStage({
    stage: 'dedup',
    group: `${settings.WEIR_TOPIC_PREFIX}dedup`,
    transactionalIdPrefix: `${settings.WEIR_TOPIC_PREFIX}dedup.`,
    inputs: [topics.raw],
    ownOutputs: [topics.decisions],
    broker,
    owners: createOwnerStore(db),
    handler,
    log,
    clock,
    observer: createStageObserver(metrics),
    faultPoint,
    maxBatchRecords: settings.WEIR_DEDUP_BATCH_RECORDS,
    sessionTimeoutMs: settings.WEIR_GROUP_SESSION_TIMEOUT_MS,
  })
  lifecycle.onStop('stage', () => stage.stop())
  db.onError(() =>
    stage.storeLost(
      'a connection to Postgres was lost: it may come back older, so rows and offsets are compared again',
    ),
  )
  const health = {
    live: () => stage.live(),
    ready: () => (lifecycle.stopping ? 'stopping' : stage.ready()),
  }
  const { WEIR_ADMIN_HOST: host, WEIR_ADMIN_PORT: port } = settings
  const admin = await startAdminServer({ host, port, health, metrics, log })
  lifecycle.onStop('admin', () => admin.close())
}
