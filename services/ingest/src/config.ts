import { commonSettings, integerSetting, readSettings } from '@weir/runtime'
import { z } from 'zod'

/** All settings of ingest. */
export const configSchema = z.object({
  WEIR_KAFKA_BROKERS: commonSettings.WEIR_KAFKA_BROKERS,
  WEIR_SCHEMA_REGISTRY_URL: commonSettings.WEIR_SCHEMA_REGISTRY_URL,
  DATABASE_URL: commonSettings.DATABASE_URL,
  REDIS_URL: commonSettings.REDIS_URL,
  WEIR_TOPIC_PREFIX: commonSettings.WEIR_TOPIC_PREFIX,
  WEIR_TOPIC_PARTITIONS: commonSettings.WEIR_TOPIC_PARTITIONS,
  WEIR_CONFIG: commonSettings.WEIR_CONFIG,
  WEIR_INSTANCE_ID: commonSettings.WEIR_INSTANCE_ID,
  WEIR_ADMIN_HOST: commonSettings.WEIR_ADMIN_HOST,
  WEIR_ADMIN_PORT: commonSettings.WEIR_ADMIN_PORT,
  WEIR_LOG_LEVEL: commonSettings.WEIR_LOG_LEVEL,
  WEIR_SHUTDOWN_TIMEOUT_MS: commonSettings.WEIR_SHUTDOWN_TIMEOUT_MS,
  WEIR_HTTP_HOST: z.string().default('127.0.0.1').describe('Address that webhooks and API clients are served on.'),
  WEIR_HTTP_PORT: integerSetting({ min: 0, max: 65_535 }).default(8080).describe('Port of webhooks and API clients.'),
  WEIR_INGEST_MAX_IN_FLIGHT: integerSetting({ min: 1, max: 100_000 })
    .default(2_000)
    .describe('Requests being read or answered at once; more are answered 503.'),
  WEIR_INGEST_REQUEST_TIMEOUT_MS: integerSetting({ min: 100, max: 600_000 })
    .default(10_000)
    .describe('Time in which a whole request must have arrived, milliseconds.'),
  WEIR_INGEST_LEASE_MS: integerSetting({ min: 1_000, max: 300_000 })
    .default(30_000)
    .describe(
      'How long an API client’s key stays taken by a request that is being published, milliseconds. Longer than any publishing.',
    ),
  WEIR_INGEST_DUPLICATE_WAIT_MS: integerSetting({ min: 0, max: 60_000 })
    .default(5_000)
    .describe(
      'How long a request waits for another one of the same key before it is answered 409 in progress, milliseconds.',
    ),
  WEIR_INGEST_STORM_THRESHOLD: integerSetting({ min: 1, max: 100_000 })
    .default(20)
    .describe('Deliveries of one key and second that get a record each; more are counted in one.'),
})

export type IngestSettings = Readonly<z.output<typeof configSchema>>

export function readConfig(env: NodeJS.ProcessEnv): IngestSettings {
  return readSettings(configSchema, env)
}
