import { topicNames, type Publisher, type WeirConfiguration } from '@weir/core'
import { createCodec } from '@weir/kafka'
import type { Database } from '@weir/postgres'
import type { ServiceContext } from '@weir/runtime'
import type { PolicySettings } from '../config.ts'
import { createPolicyMetrics } from '../metrics.ts'
import { PolicyService } from '../service.ts'
import { ReportIntake } from '../service/report-intake.ts'
import { createAvroPolicyCodec } from './avro-policy-codec.ts'
import { PostgresDeliveryLedger } from './postgres-delivery-ledger.ts'
import { PostgresPolicyLedger } from './postgres-policy-ledger.ts'
import { RedisRateLimiter } from './redis-rate-limiter.ts'

interface Opened {
  readonly db: Database
  readonly publisher: Publisher
  readonly configuration: WeirConfiguration
  readonly faultPoint: (name: string) => void
}

/** The stage handler and the door for agents' reports, on opened stores. */
export async function assemble(
  { log, metrics, lifecycle, clock }: ServiceContext,
  settings: PolicySettings,
  { db, publisher, configuration, faultPoint }: Opened,
): Promise<{ readonly handler: PolicyService; readonly intake: ReportIntake }> {
  const topics = topicNames(settings.WEIR_TOPIC_PREFIX)
  const policyMetrics = createPolicyMetrics(metrics)
  const keyPrefix = settings.WEIR_TOPIC_PREFIX
  const limiter = new RedisRateLimiter({ redisUrl: settings.REDIS_URL, keyPrefix, log, metrics: policyMetrics })
  lifecycle.onStop('redis', () => limiter.close())
  await limiter.warmUp()
  const codec = createAvroPolicyCodec(await createCodec({ registryUrl: settings.WEIR_SCHEMA_REGISTRY_URL, log }))
  const deliveries = new PostgresDeliveryLedger(db)
  const reporting = configuration.agents.filter(({ outcomes }) => outcomes === 'required')
  const handler = new PolicyService({
    topics,
    partitions: settings.WEIR_TOPIC_PARTITIONS,
    routes: configuration.routes,
    reportingAgents: new Set(reporting.map(({ name }) => name)),
    rules: { budgets: configuration.budgets, maxHops: settings.WEIR_POLICY_MAX_HOPS },
    configVersion: configuration.version,
    ledger: new PostgresPolicyLedger(db),
    deliveries,
    limiter,
    publisher,
    codec,
    clock,
    log,
    metrics: policyMetrics,
    faultPoint,
    claimTimeoutMs: settings.WEIR_POLICY_CLAIM_TIMEOUT_MS,
    keepMs: settings.WEIR_POLICY_KEEP_SECONDS * 1_000,
  })
  return { handler, intake: new ReportIntake({ directory: deliveries, topics, publisher, codec, clock }) }
}
