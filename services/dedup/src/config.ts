import { integerSetting, readSettings, stageSettings } from '@weir/runtime'
import { z } from 'zod'

/** All settings of dedup. */
export const configSchema = z.object({
  ...stageSettings,
  WEIR_DEDUP_CACHE_ENTRIES: integerSetting({ min: 0, max: 4_194_304 })
    .default(65_536)
    .describe('Recent keys each owned partition keeps in memory, 72 bytes each. 0 switches the cache off.'),
  WEIR_DEDUP_BATCH_RECORDS: integerSetting({ min: 1, max: 10_000 })
    .default(1_000)
    .describe('Records in one claim and one Kafka transaction at most.'),
})

export type DedupSettings = Readonly<z.output<typeof configSchema>>

export function readConfig(env: NodeJS.ProcessEnv): DedupSettings {
  return readSettings(configSchema, env)
}
