// The four services Weir stands on: each from a URL in the environment, else from a container engine, else as a native process.
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { WeirError } from '@weir/core'
import { composeUrls, dropCompose, engineAnswers, startCompose, stopCompose } from './compose.ts'
import { fetchKafka, startKafka } from './kafka.ts'
import type { DataPolicy, NativeContext } from './native.ts'
import { PortBook } from './port-book.ts'
import { dropPostgres, startPostgres } from './postgres.ts'
import type { Progress } from './progress.ts'
import { startRedis } from './redis.ts'
import { fetchRegistry, startRegistry } from './registry.ts'
import { answers } from './run-command.ts'
import { stackNames, type StackName, type StackUrls } from './stack-urls.ts'
import { Supervisor } from './supervisor.ts'

export type StackMode = 'environment' | 'container' | 'native'

export interface StackOptions {
  /** Folder of this stack: data, logs, pid files. */
  readonly stateDir: string
  /** Folder for unpacked programs, shared between stacks. */
  readonly toolsDir: string
  readonly env: NodeJS.ProcessEnv
  /** Default `fresh`. */
  readonly data?: DataPolicy
  readonly progress: Progress
  readonly signal: AbortSignal
}

export interface Stack {
  readonly urls: StackUrls
  readonly modes: Readonly<Record<StackName, StackMode>>
  readonly supervisor: Supervisor
  /** Ends what was started here; the data stays until the next fresh start or `dropStack`. */
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
  - start a container engine (Docker, or Podman with its docker command, and compose), and Weir starts them from docker-compose.yml
  - set WEIR_KAFKA_BROKERS, WEIR_SCHEMA_REGISTRY_URL, DATABASE_URL and REDIS_URL to services you have`

/** Starts what is not there yet and waits until everything answers. Ends what it started when it fails. */
export async function startStack(options: StackOptions): Promise<Stack> {
  options.signal.throwIfAborted()
  mkdirSync(options.stateDir, { recursive: true })
  mkdirSync(options.toolsDir, { recursive: true })
  const supervisor = new Supervisor(options.stateDir)
  await supervisor.stopAll()
  const [engine, java, maven] = await Promise.all([
    engineAnswers(),
    answers('java', ['-version']),
    answers('mvn', ['-v']),
  ])
  const modes = chooseModes(options.env, { engine, java: java && maven })
  if (modes === null) throw new WeirError('prerequisite_missing', noWayMessage)
  const containers = stackNames.filter(name => modes[name] === 'container')
  const data = options.data ?? 'fresh'
  const stop = async (): Promise<void> => {
    await supervisor.stopAll()
    if (containers.length > 0) await (data === 'fresh' ? dropCompose : stopCompose)(options.stateDir)
  }
  const ports = new PortBook(join(options.stateDir, 'ports.json'))
  try {
    if (containers.length > 0) await startCompose(options.stateDir, { ...options, data })
    const urls = await startAll({ ...options, data, ports, supervisor }, modes, options.env)
    return { urls, modes, supervisor, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Ends everything that runs for a folder, whoever started it. The data stays. */
export async function stopStack(stateDir: string): Promise<void> {
  if (!existsSync(stateDir)) return
  await new Supervisor(stateDir).stopAll()
  await stopCompose(stateDir)
}

/** Ends everything that runs for a folder and removes the folder, data and all. */
export async function dropStack(stateDir: string): Promise<void> {
  if (!existsSync(stateDir)) return
  await new Supervisor(stateDir).stopAll()
  await dropCompose(stateDir)
  dropPostgres(stateDir)
  rmSync(stateDir, { recursive: true, force: true })
}

async function startAll(
  given: NativeContext,
  modes: Readonly<Record<StackName, StackMode>>,
  env: NodeJS.ProcessEnv,
): Promise<StackUrls> {
  const containerUrls = Object.values(modes).includes('container') ? composeUrls(given.stateDir) : null
  // When one fails, the others need not go on.
  const failure = new AbortController()
  const context = { ...given, signal: AbortSignal.any([given.signal, failure.signal]) }
  const url = async (name: StackName, native: () => Promise<string>): Promise<readonly [StackName, string]> => {
    if (modes[name] === 'environment') return [name, env[name] ?? '']
    if (containerUrls !== null) return [name, containerUrls[name]]
    try {
      return [name, await native()]
    } catch (error) {
      failure.abort(error)
      throw error
    }
  }
  const kafkaLibs = modes.WEIR_KAFKA_BROKERS === 'native' ? fetchKafka(context) : Promise.resolve('')
  const started = await Promise.allSettled([
    url('WEIR_KAFKA_BROKERS', async () => await startKafka(context, await kafkaLibs)),
    url('WEIR_SCHEMA_REGISTRY_URL', async () => {
      // One Maven at a time. That Kafka's failed is said where Kafka is started.
      await Promise.allSettled([kafkaLibs])
      return await startRegistry(context, await fetchRegistry(context))
    }),
    url('DATABASE_URL', async () => await startPostgres(context)),
    url('REDIS_URL', async () => await startRedis(context)),
  ])
  context.signal.throwIfAborted()
  const found = started.flatMap(result => (result.status === 'fulfilled' ? [result.value] : []))
  return Object.fromEntries(found) as unknown as StackUrls
}

/** Folder of the programs of a checkout. */
export function toolsDirOf(checkout: string): string {
  return join(checkout, '.weir', 'tools')
}
