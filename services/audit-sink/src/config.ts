import { commonSettings, integerSetting, readSettings, secret } from '@weir/runtime'
import { z } from 'zod'

/** All settings of the audit sink and its API. */
export const configSchema = z.object({
  WEIR_KAFKA_BROKERS: commonSettings.WEIR_KAFKA_BROKERS,
  WEIR_SCHEMA_REGISTRY_URL: commonSettings.WEIR_SCHEMA_REGISTRY_URL,
  DATABASE_URL: commonSettings.DATABASE_URL,
  WEIR_AUDIT_READER_DATABASE_URL: secret(
    z
      .url({ protocol: /^postgres(ql)?$/ })
      .describe('Postgres with the login of the audit reader: the analysts’ API reads with it.'),
  ),
  WEIR_TOPIC_PREFIX: commonSettings.WEIR_TOPIC_PREFIX,
  WEIR_CONFIG: commonSettings.WEIR_CONFIG,
  WEIR_INSTANCE_ID: commonSettings.WEIR_INSTANCE_ID,
  WEIR_ADMIN_HOST: commonSettings.WEIR_ADMIN_HOST,
  WEIR_ADMIN_PORT: commonSettings.WEIR_ADMIN_PORT,
  WEIR_LOG_LEVEL: commonSettings.WEIR_LOG_LEVEL,
  WEIR_SHUTDOWN_TIMEOUT_MS: commonSettings.WEIR_SHUTDOWN_TIMEOUT_MS,
  WEIR_HTTP_HOST: z.string().default('127.0.0.1').describe('Address that the analysts’ API listens on.'),
  WEIR_HTTP_PORT: integerSetting({ min: 0, max: 65_535 }).default(8083).describe('Port of the analysts’ API.'),
  WEIR_GROUP_SESSION_TIMEOUT_MS: integerSetting({ min: 6_000, max: 300_000 })
    .default(20_000)
    .describe('Silence after which another instance takes over from this one, milliseconds.'),
})

export type AuditSinkSettings = Readonly<z.output<typeof configSchema>>

export function readConfig(env: NodeJS.ProcessEnv): AuditSinkSettings {
  return readSettings(configSchema, env)
}
