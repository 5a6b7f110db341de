import { join } from 'node:path'
import { stderrProgress, startStack, toolsDirOf, type DataPolicy, type Stack } from '@weir/ops'
import { createLog } from '@weir/runtime'
import { localSecrets, System, type ServiceName } from '@weir/system'
import { checkout } from './paths.ts'
import type { OwnedRun } from './owned-run.ts'

export interface LocalOptions {
  readonly database: string
  readonly topicPrefix: string
  readonly partitions?: number
  /** Default `fresh`. */
  readonly data?: DataPolicy
  /** HTTP ports; else free ones. */
  readonly ports?: Partial<Record<ServiceName, number>>
  readonly env?: Readonly<Record<string, string>>
}

/** Stack and prepared system of one folder. Whoever owns the run ends both. */
export async function startLocalSystem(
  run: Pick<OwnedRun, 'stateDir' | 'signal'> & Partial<Pick<OwnedRun, 'onEnd'>>,
  options: LocalOptions,
): Promise<{ readonly stack: Stack; readonly system: System }> {
  const stack = await startStack({
    stateDir: run.stateDir,
    toolsDir: toolsDirOf(checkout),
    env: process.env,
    ...(options.data === undefined ? {} : { data: options.data }),
    progress: stderrProgress,
    signal: run.signal,
  })
  run.onEnd?.(() => stack.stop())
  const system = await System.prepare({
    urls: stack.urls,
    stateDir: run.stateDir,
    configFile: process.env['WEIR_CONFIG'] ?? join(checkout, 'weir.yaml'),
    secrets: localSecrets(join(run.stateDir, 'secrets.json')),
    database: options.database,
    topicPrefix: options.topicPrefix,
    partitions: options.partitions ?? 6,
    progress: stderrProgress,
    log: createLog({ service: 'weir', level: 'error' }),
    ...(options.ports === undefined ? {} : { ports: options.ports }),
    ...(options.env === undefined ? {} : { env: options.env }),
  })
  run.onEnd?.(() => system.stop())
  return { stack, system }
}
