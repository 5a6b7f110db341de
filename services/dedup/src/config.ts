import { commonSettings, integerSetting, readSettings } from '@weir/runtime'
import { z } from 'zod'

const { WEIR_KAFKA_BROKERS, WEIR_SCHEMA_REGISTRY_URL, DATABASE_URL, WEIR_TOPIC_PREFIX, WEIR_TOPIC_PARTITIONS } =
  commonSettings
const { WEIR_CONFIG, WEIR_INSTANCE_ID, WEIR_ADMIN_HOST, WEIR_ADMIN_PORT } = commonSettings
const { WEIR_LOG_LEVEL, WEIR_SHUTDOWN_TIMEOUT_MS } = commonSettings

/** All settings of dedup. */
export const configSchema = z.object({
  WEIR_KAFKA_BROKERS,
  WEIR_SCHEMA_REGISTRY_URL,
  DATABASE_URL,
  WEIR_TOPIC_PREFIX,
  WEIR_TOPIC_PARTITIONS,
  WEIR_CONFIG,
  WEIR_INSTANCE_ID,
  WEIR_ADMIN_HOST,
  WEIR_ADMIN_PORT,
  WEIR_LOG_LEVEL,
  WEIR_SHUTDOWN_TIMEOUT_MS,
  WEIR_DEDUP_CACHE_ENTRIES: integerSetting({ min: 0, max: 4_194_304 })
    .default(65_536)
    .describe('Recent keys each owned partition keeps in memory, 72 bytes each. 0 switches the cache off.'),
  WEIR_DEDUP_BATCH_RECORDS: integerSetting({ min: 1, max: 10_000 })
    .default(1_000)
    .describe('Records in one claim and one Kafka transaction at most.'),
  WEIR_GROUP_SESSION_TIMEOUT_MS: integerSetting({ min: 6_000, max: 300_000 })
    .default(20_000)
    .describe('Silence after which another instance takes over the partitions of this one, milliseconds.'),
})

export type DedupSettings = Readonly<z.output<typeof configSchema>>

export function readConfig(env: NodeJS.ProcessEnv): DedupSettings {
  return readSettings(configSchema, env)
}
