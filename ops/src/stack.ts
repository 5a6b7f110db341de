// The four services Weir stands on: each from a URL in the environment, else from a container engine, else as a native process.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { WeirError } from '@weir/core'
import { composeUrls, startCompose, stopCompose } from './compose.ts'
import { fetchKafka, startKafka } from './kafka.ts'
import type { NativeContext } from './native.ts'
import { startPostgres } from './postgres.ts'
import { step, type Progress } from './progress.ts'
import { startRedis } from './redis.ts'
import { fetchRegistry, startRegistry } from './registry.ts'
import { answers } from './run-command.ts'
import { stackNames, type StackName, type StackUrls } from './stack-urls.ts'
import { Supervisor } from './supervisor.ts'

export type StackMode = 'environment' | 'container' | 'native'

export interface StackOptions {
  /** Folder of this stack. Data in it is fresh at each start. */
  readonly stateDir: string
  /** Folder for unpacked programs, shared between stacks. */
  readonly toolsDir: string
  readonly env: NodeJS.ProcessEnv
  readonly progress: Progress
  readonly signal: AbortSignal
}

export interface Stack {
  readonly urls: StackUrls
  readonly modes: Readonly<Record<StackName, StackMode>>
  readonly supervisor: Supervisor
  stop(): Promise<void>
}

/** Which way each service is to be had. `null`: no way; then nothing is started and the message says what to do. */
export function chooseModes(
  env: NodeJS.ProcessEnv,
  has: { readonly engine: boolean; readonly java: boolean },
): Record<StackName, StackMode> | null {
  const rest = has.engine ? 'container' : 'native'
  const choose = (name: StackName): StackMode => (env[name] ? 'environment' : rest)
  const modes = Object.fromEntries(stackNames.map(name => [name, choose(name)])) as Record<StackName, StackMode>
  const needsJava = modes.WEIR_KAFKA_BROKERS === 'native' || modes.WEIR_SCHEMA_REGISTRY_URL === 'native'
  return needsJava && !has.java ? null : modes
}

export const noWayMessage = `Weir needs Kafka, a schema registry, Postgres and Redis, and there is no way to start them here. Do one of these:
  - install Java 17 or newer and Maven (Debian: apt-get install openjdk-17-jre-headless maven), and Weir starts them itself
  - start a container engine (Docker or Podman with compose), and Weir starts them from docker-compose.yml
  - set WEIR_KAFKA_BROKERS, WEIR_SCHEMA_REGISTRY_URL, DATABASE_URL and REDIS_URL to services you have`

/** Starts what is not there yet and waits until everything answers. Ends what it started when it fails. */
export async function startStack(options: StackOptions): Promise<Stack> {
  mkdirSync(options.stateDir, { recursive: true })
  mkdirSync(options.toolsDir, { recursive: true })
  const supervisor = new Supervisor(options.stateDir)
  await supervisor.stopAll()
  const [engine, java, maven] = await Promise.all([
    answers('docker', ['info']),
    answers('java', ['-version']),
    answers('mvn', ['-v']),
  ])
  const modes = chooseModes(options.env, { engine, java: java && maven })
  if (modes === null) throw new WeirError('prerequisite_missing', noWayMessage)
  const containers = stackNames.filter(name => modes[name] === 'container')
  const stop = async (): Promise<void> => {
    await supervisor.stopAll()
    if (containers.length > 0) await stopCompose(options.stateDir)
  }
  try {
    if (containers.length > 0) await startCompose(options.stateDir, options.progress)
    const urls = await startAll({ ...options, supervisor }, modes, options.env)
    return { urls, modes, supervisor, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function startAll(
  context: NativeContext,
  modes: Readonly<Record<StackName, StackMode>>,
  env: NodeJS.ProcessEnv,
): Promise<StackUrls> {
  const containerUrls = Object.values(modes).includes('container') ? composeUrls(context.stateDir) : null
  const url = async (name: StackName, native: () => Promise<string>): Promise<string> => {
    if (modes[name] === 'environment') return env[name] ?? ''
    if (containerUrls !== null) return containerUrls[name]
    return await native()
  }
  // Maven must not run twice at once; everything else may.
  const kafkaLibs = modes.WEIR_KAFKA_BROKERS === 'native' ? download(context, 'Kafka', fetchKafka) : Promise.resolve('')
  const registryFiles = kafkaLibs.then(() =>
    modes.WEIR_SCHEMA_REGISTRY_URL === 'native' ? download(context, 'the schema registry', fetchRegistry) : '',
  )
  const started = await Promise.allSettled([
    url('WEIR_KAFKA_BROKERS', async () => startKafka(context, await kafkaLibs)),
    url('WEIR_SCHEMA_REGISTRY_URL', async () => startRegistry(context, await registryFiles)),
    url('DATABASE_URL', () => startPostgres(context)),
    url('REDIS_URL', () => startRedis(context)),
  ])
  const values = started.map(result => {
    if (result.status === 'rejected') throw result.reason
    return result.value
  })
  return Object.fromEntries(stackNames.map((name, i) => [name, values[i] ?? ''])) as unknown as StackUrls
}

async function download(
  context: NativeContext,
  what: string,
  fetchIt: (context: NativeContext) => Promise<string>,
): Promise<string> {
  return await step(context.progress, `getting ${what} (downloaded once, through Maven)`, () => fetchIt(context))
}

/** Folder of the programs of a checkout. */
export function toolsDirOf(checkout: string): string {
  return join(checkout, '.weir', 'tools')
}
