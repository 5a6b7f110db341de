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
import { createAvroPolicyCodec } from './adapters/avro-policy-codec.ts'
import { PostgresPolicyLedger } from './adapters/postgres-policy-ledger.ts'
import { RedisRateLimiter } from './adapters/redis-rate-limiter.ts'
import { configSchema, readConfig, type PolicySettings } from './config.ts'
import { createPolicyMetrics } from './metrics.ts'
import { PolicyService } from './service.ts'

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
  const handler = await createHandler(context, settings, { db, publisher, faultPoint })
  const stage = await runStage({
    stage: 'policy',
    group: `${settings.WEIR_TOPIC_PREFIX}policy`,
    transactionalIdPrefix: `${settings.WEIR_TOPIC_PREFIX}policy.`,
    inputs: [topics.events, topics.released],
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
  const health = { live: () => stage.live(), ready: () => (lifecycle.stopping ? 'stopping' : stage.ready()) }
  const { WEIR_ADMIN_HOST: host, WEIR_ADMIN_PORT: port } = settings
  const admin = await startAdminServer({ host, port, health, metrics, log })
  lifecycle.onStop('admin', () => admin.close())
}

async function createHandler(
  { env, log, metrics, lifecycle, clock }: ServiceContext,
  settings: PolicySettings,
  opened: Pick<ConstructorParameters<typeof PolicyService>[0], 'publisher' | 'faultPoint'> & {
    readonly db: ConstructorParameters<typeof PostgresPolicyLedger>[0]
  },
): Promise<PolicyService> {
  const configuration = await loadConfiguration(settings.WEIR_CONFIG, env, { secretsOf: [] })
  const policyMetrics = createPolicyMetrics(metrics)
  const keyPrefix = settings.WEIR_TOPIC_PREFIX
  const limiter = new RedisRateLimiter({ redisUrl: settings.REDIS_URL, keyPrefix, log, metrics: policyMetrics })
  lifecycle.onStop('redis', () => limiter.close())
  await limiter.warmUp()
  return new PolicyService({
    topics: topicNames(settings.WEIR_TOPIC_PREFIX),
    partitions: settings.WEIR_TOPIC_PARTITIONS,
    routes: configuration.routes,
    rules: { budgets: configuration.budgets, maxHops: settings.WEIR_POLICY_MAX_HOPS },
    configVersion: configuration.version,
    ledger: new PostgresPolicyLedger(opened.db),
    limiter,
    publisher: opened.publisher,
    codec: createAvroPolicyCodec(await createCodec({ registryUrl: settings.WEIR_SCHEMA_REGISTRY_URL, log })),
    clock,
    log,
    metrics: policyMetrics,
    faultPoint: opened.faultPoint,
    claimTimeoutMs: settings.WEIR_POLICY_CLAIM_TIMEOUT_MS,
  })
}
