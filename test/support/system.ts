import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Broker, Log } from '@weir/core'
import { topicNames, type TopicNames } from '@weir/core'
import { connectBroker, createCodec, type Codec } from '@weir/kafka'
import { stackNames, type StackUrls } from '@weir/ops'
import { openDatabase, type Database } from '@weir/postgres'
import { dropDatabase, makeSecrets, System } from '@weir/system'

export const quietLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => quietLog,
}

/** The services tests run on, from the environment. */
export function stackUrls(): StackUrls {
  const missing = stackNames.filter(name => (process.env[name] ?? '') === '')
  if (missing.length > 0) throw new Error(`${missing.join(', ')} not set: run the tests with ./weir test`)
  return Object.fromEntries(stackNames.map(name => [name, process.env[name] ?? ''])) as unknown as StackUrls
}

/** A Weir of its own for one test file: own database, topics, ports; services are real processes. */
export interface TestSystem {
  readonly system: System
  readonly topics: TopicNames
  readonly broker: Broker
  readonly codec: Codec
  /** With the administrator's rights. */
  readonly db: Database
  readonly urls: StackUrls
  end(): Promise<void>
}

export interface TestSystemOptions {
  readonly partitions?: number
  readonly configFile?: string
  readonly env?: Readonly<Record<string, string>>
}

const exampleConfiguration = fileURLToPath(new URL('../../weir.yaml', import.meta.url))

export async function startTestSystem(options: TestSystemOptions = {}): Promise<TestSystem> {
  const urls = stackUrls()
  const id = randomBytes(5).toString('hex')
  const stateDir = mkdtempSync(join(tmpdir(), 'weir-test-'))
  const topicPrefix = `t${id}.`
  const database = `weir_t_${id}`
  const system = await System.prepare({
    urls,
    stateDir,
    configFile: options.configFile ?? exampleConfiguration,
    secrets: makeSecrets(),
    database,
    topicPrefix,
    partitions: options.partitions ?? 3,
    progress: { line: () => undefined },
    log: quietLog,
    env: { WEIR_ALLOW_FAULTS: '1', WEIR_GROUP_SESSION_TIMEOUT_MS: '6000', ...options.env },
  })
  const broker = connectBroker({ brokers: urls.WEIR_KAFKA_BROKERS.split(','), clientId: `test-${id}`, log: quietLog })
  const codec = await createCodec({ registryUrl: urls.WEIR_SCHEMA_REGISTRY_URL, log: quietLog })
  const db = openDatabase({ url: system.adminUrl, applicationName: 'weir-test', maxConnections: 2 })
  return {
    system,
    topics: topicNames(topicPrefix),
    broker,
    codec,
    db,
    urls,
    end: async () => {
      await system.stop()
      await broker.close()
      await db.close()
      await dropDatabase(urls.DATABASE_URL, database)
      rmSync(stateDir, { recursive: true, force: true })
    },
  }
}
