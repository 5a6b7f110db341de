// The container engine's way: the four backing services of docker-compose.yml under a project name of their own.
import { createHash, randomBytes } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePorts } from './wait.ts'
import { step, type Progress } from './progress.ts'
import { runCommand } from './run-command.ts'
import type { StackUrls } from './stack-urls.ts'

const composeFile = fileURLToPath(new URL('../../docker-compose.yml', import.meta.url))
const backing = ['kafka', 'registry', 'postgres', 'redis']

function project(stateDir: string): string {
  return `weir-${createHash('sha256').update(stateDir).digest('hex').slice(0, 8)}`
}

function envFile(stateDir: string): string {
  return join(stateDir, 'compose.env')
}

export async function startCompose(stateDir: string, progress: Progress): Promise<void> {
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
  await step(progress, 'starting containers', () => compose(stateDir, ['up', '--detach', '--wait', ...backing]))
}

export async function stopCompose(stateDir: string): Promise<void> {
  if (existsSync(envFile(stateDir))) await compose(stateDir, ['down', '--volumes'])
}

export function composeUrls(stateDir: string): StackUrls {
  const lines = readFileSync(envFile(stateDir), 'utf8').trim().split('\n')
  const value = new Map(lines.map(line => line.split('=') as [string, string]))
  const at = (name: string): string => `127.0.0.1:${value.get(name) ?? ''}`
  return {
    WEIR_KAFKA_BROKERS: at('WEIR_KAFKA_PORT'),
    WEIR_SCHEMA_REGISTRY_URL: `http://${at('WEIR_REGISTRY_PORT')}/apis/ccompat/v7`,
    DATABASE_URL: `postgres://postgres:${value.get('POSTGRES_PASSWORD') ?? ''}@${at('WEIR_POSTGRES_PORT')}/postgres`,
    REDIS_URL: `redis://${at('WEIR_REDIS_PORT')}`,
  }
}

async function compose(stateDir: string, args: readonly string[]): Promise<void> {
  const base = ['compose', '--file', composeFile, '--env-file', envFile(stateDir), '--project-name', project(stateDir)]
  await runCommand('docker', [...base, ...args])
}
