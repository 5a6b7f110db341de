import { commonSettings, integerSetting, readSettings, stageSettings } from '@weir/runtime'
import { z } from 'zod'

/** All settings of policy. */
export const configSchema = z.object({
  ...stageSettings,
  REDIS_URL: commonSettings.REDIS_URL,
  WEIR_POLICY_BATCH_RECORDS: integerSetting({ min: 1, max: 10_000 })
    .default(500)
    .describe('Records in one claim and one Kafka transaction at most.'),
  WEIR_POLICY_MAX_HOPS: integerSetting({ min: 1, max: 1_000 })
    .default(16)
    .describe('Events further than this from the first event of their chain are denied: they look like a loop.'),
  WEIR_POLICY_CLAIM_TIMEOUT_MS: integerSetting({ min: 1_000, max: 600_000 })
    .default(10_000)
    .describe('A release that was not claimed for this long is produced again, milliseconds.'),
  WEIR_POLICY_KEEP_SECONDS: integerSetting({ min: 86_400, max: 366 * 86_400 })
    .default(35 * 86_400)
    .describe(
      'How long verdicts, charges and ended deliveries are kept in Postgres, seconds of log-append time. At least the longest window of a source plus five days.',
    ),
  WEIR_HTTP_HOST: z.string().default('127.0.0.1').describe('Address that the agents’ API listens on.'),
  WEIR_HTTP_PORT: integerSetting({ min: 0, max: 65_535 }).default(8082).describe('Port of the agents’ API.'),
})

export type PolicySettings = Readonly<z.output<typeof configSchema>>

export function readConfig(env: NodeJS.ProcessEnv): PolicySettings {
  return readSettings(configSchema, env)
}
