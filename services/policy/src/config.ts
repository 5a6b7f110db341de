import { commonSettings, integerSetting, readSettings } from '@weir/runtime'
import { z } from 'zod'

const { WEIR_KAFKA_BROKERS, WEIR_SCHEMA_REGISTRY_URL, DATABASE_URL, REDIS_URL, WEIR_TOPIC_PREFIX } = commonSettings
const { WEIR_TOPIC_PARTITIONS, WEIR_CONFIG, WEIR_INSTANCE_ID, WEIR_ADMIN_HOST, WEIR_ADMIN_PORT } = commonSettings
const { WEIR_LOG_LEVEL, WEIR_SHUTDOWN_TIMEOUT_MS } = commonSettings

/** All settings of policy. */
export const configSchema = z.object({
  WEIR_KAFKA_BROKERS,
  WEIR_SCHEMA_REGISTRY_URL,
  DATABASE_URL,
  REDIS_URL,
  WEIR_TOPIC_PREFIX,
  WEIR_TOPIC_PARTITIONS,
  WEIR_CONFIG,
  WEIR_INSTANCE_ID,
  WEIR_ADMIN_HOST,
  WEIR_ADMIN_PORT,
  WEIR_LOG_LEVEL,
  WEIR_SHUTDOWN_TIMEOUT_MS,
  WEIR_POLICY_BATCH_RECORDS: integerSetting({ min: 1, max: 10_000 })
    .default(500)
    .describe('Records in one claim and one Kafka transaction at most.'),
  WEIR_POLICY_MAX_HOPS: integerSetting({ min: 1, max: 1_000 })
    .default(16)
    .describe('Events further than this from the first event of their chain are denied: they look like a loop.'),
  WEIR_POLICY_CLAIM_TIMEOUT_MS: integerSetting({ min: 1_000, max: 600_000 })
    .default(10_000)
    .describe('A release that was not claimed for this long is produced again, milliseconds.'),
  WEIR_GROUP_SESSION_TIMEOUT_MS: integerSetting({ min: 6_000, max: 300_000 })
    .default(20_000)
    .describe('Silence after which another instance takes over the partitions of this one, milliseconds.'),
})

export type PolicySettings = Readonly<z.output<typeof configSchema>>

export function readConfig(env: NodeJS.ProcessEnv): PolicySettings {
  return readSettings(configSchema, env)
}
