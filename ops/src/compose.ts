// The container engine's way: the four backing services of docker-compose.yml under a project name of their own.
import { createHash, randomBytes } from 'node:crypto'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { NativeContext } from './native.ts'
import { step } from './progress.ts'
import { answers, runCommand } from './run-command.ts'
import type { StackUrls } from './stack-urls.ts'
import { freePorts } from './wait.ts'

type ComposeOptions = Pick<NativeContext, 'data' | 'progress' | 'signal'>

const composeFile = fileURLToPath(new URL('../../docker-compose.yml', import.meta.url))
const backing = ['kafka', 'registry', 'postgres', 'redis']

function project(stateDir: string): string {
  return `weir-${createHash('sha256').update(stateDir).digest('hex').slice(0, 8)}`
}

function envFile(stateDir: string): string {
  return join(stateDir, 'compose.env')
}

/** Ports and password stay the same as long as the volumes do. */
async function writeEnvFile(stateDir: string): Promise<void> {
  if (existsSync(envFile(stateDir))) return
  const [kafka, registry, postgres, redis] = await freePorts(4)
  const values = {
    WEIR_KAFKA_PORT: kafka,
    WEIR_REGISTRY_PORT: registry,
    WEIR_POSTGRES_PORT: postgres,
    WEIR_REDIS_PORT: redis,
    POSTGRES_PASSWORD: randomBytes(18).toString('hex'),
  }
  const text = Object.entries(values).map(([name, value]) => `${name}=${value}\n`)
  writeFileSync(envFile(stateDir), text.join(''), { mode: 0o600 })
}

export async function startCompose(stateDir: string, options: ComposeOptions): Promise<void> {
  const { data, progress, signal } = options
  if (data === 'fresh') await dropCompose(stateDir)
  await writeEnvFile(stateDir)
  await step(progress, 'starting containers', () => compose(stateDir, ['up', '--detach', '--wait', ...backing], signal))
}

/** Whether a container engine with compose is there and runs. */
export async function engineAnswers(): Promise<boolean> {
  return (await answers('docker', ['info'])) && (await answers('docker', ['compose', 'version']))
}

/** Ends the containers, if there are any; their data stays. An engine that does not answer runs nothing. */
export async function stopCompose(stateDir: string): Promise<void> {
  if (existsSync(envFile(stateDir)) && (await engineAnswers())) await compose(stateDir, ['down'])
}

/** Ends the containers, if there are any, and throws their data away. */
export async function dropCompose(stateDir: string): Promise<void> {
  if (!existsSync(envFile(stateDir))) return
  await compose(stateDir, ['down', '--volumes'])
  rmSync(envFile(stateDir))
}

export function composeUrls(stateDir: string): StackUrls {
  const values = readEnvFile(stateDir)
  const at = (name: string): string => `127.0.0.1:${values[name] ?? ''}`
  return {
    WEIR_KAFKA_BROKERS: at('WEIR_KAFKA_PORT'),
    WEIR_SCHEMA_REGISTRY_URL: `http://${at('WEIR_REGISTRY_PORT')}/apis/ccompat/v7`,
    DATABASE_URL: `postgres://postgres:${values['POSTGRES_PASSWORD'] ?? ''}@${at('WEIR_POSTGRES_PORT')}/postgres`,
    REDIS_URL: `redis://${at('WEIR_REDIS_PORT')}`,
  }
}

function readEnvFile(stateDir: string): Readonly<Record<string, string>> {
  const lines = readFileSync(envFile(stateDir), 'utf8').trim().split('\n')
  return Object.fromEntries(lines.map(line => line.split('=') as [string, string]))
}

async function compose(stateDir: string, args: readonly string[], signal?: AbortSignal): Promise<void> {
  const base = ['compose', '--file', composeFile, '--env-file', envFile(stateDir), '--project-name', project(stateDir)]
  // Compose prefers the environment to the file.
  const env = { ...process.env, ...readEnvFile(stateDir) }
  await runCommand('docker', [...base, ...args], signal === undefined ? { env } : { env, signal })
}
