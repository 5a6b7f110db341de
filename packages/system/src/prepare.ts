import { topicNames, type Log, type WeirConfiguration } from '@weir/core'
import { ensureTopics, pushSchemas, topicSpecs } from '@weir/kafka'
import { ensureLogins, loginName, migrate, openDatabase, serviceRoles, type ServiceRole } from '@weir/postgres'

export interface PrepareOptions {
  readonly kafkaBrokers: readonly string[]
  readonly schemaRegistryUrl: string
  /** Administrator's URL of the database to prepare. */
  readonly adminUrl: string
  readonly topicPrefix: string
  readonly partitions: number
  readonly replicationFactor: number
  readonly minInsyncReplicas: number
  readonly passwords: Readonly<Record<ServiceRole, string>>
  readonly configuration: WeirConfiguration
  readonly log: Log
}

/** Everything the services need before they start: migrations, logins, schemas, topics. Safe to run again. */
export async function prepare(options: PrepareOptions): Promise<Record<ServiceRole, string>> {
  const { log, adminUrl, schemaRegistryUrl, kafkaBrokers } = options
  const specs = topicSpecs(topicNames(options.topicPrefix), {
    partitions: options.partitions,
    replicationFactor: options.replicationFactor,
    minInsyncReplicas: options.minInsyncReplicas,
    agents: options.configuration.agents.map(agent => agent.name),
  })
  const [logins] = await Promise.all([
    migrate({ adminUrl, log }).then(() => ensureLogins({ adminUrl, passwords: options.passwords })),
    pushSchemas({ registryUrl: schemaRegistryUrl }),
    ensureTopics({ brokers: kafkaBrokers, clientId: 'weir-prepare', log, specs }),
  ])
  return logins
}

/** Creates a database when there is none of that name; returns its URL. */
export async function ensureDatabase(serverUrl: string, name: string): Promise<string> {
  if (!/^[a-z][a-z0-9_]{0,50}$/.test(name)) throw new TypeError(`${name} is not a database name`)
  const db = openDatabase({ url: serverUrl, applicationName: 'weir-prepare', maxConnections: 1 })
  try {
    const found = await db.query('select from pg_database where datname = $1', [name])
    if (found.length === 0) await db.query(`create database ${name}`)
  } finally {
    await db.close()
  }
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return url.href
}

/** Throws away a database and the logins made for it. */
export async function dropDatabase(serverUrl: string, name: string): Promise<void> {
  const db = openDatabase({
    url: serverUrl,
    applicationName: 'weir-prepare',
    maxConnections: 1,
    statementTimeoutMs: 60_000,
  })
  try {
    await db.query(`drop database if exists ${name} with (force)`)
    for (const role of serviceRoles) await db.query(`drop role if exists ${loginName(name, role)}`)
  } finally {
    await db.close()
  }
}
