import { z } from 'zod'
import { commonSettings, readSettings } from './settings.ts'

const processSettings = z.object({
  WEIR_LOG_LEVEL: commonSettings.WEIR_LOG_LEVEL,
  WEIR_SHUTDOWN_TIMEOUT_MS: commonSettings.WEIR_SHUTDOWN_TIMEOUT_MS,
})

/** The environment, and the two settings that a process needs before its service reads its own. */
export function readProcessSettings(): {
  env: NodeJS.ProcessEnv
  settings: Readonly<z.output<typeof processSettings>>
} {
  return { env: process.env, settings: readSettings(processSettings, process.env) }
}
