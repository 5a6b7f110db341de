import { randomBytes } from 'node:crypto'
import type { Log } from '@weir/core'
import {
  ensureLogins,
  loginName,
  migrate,
  openDatabase,
  serviceRoles,
  type Database,
  type ServiceRole,
} from '@weir/postgres'
import { setting } from './setting.ts'

/** A database of its own for one test file. */
export interface TestDatabase {
  readonly name: string
  /** URL with the administrator's rights. */
  readonly adminUrl: string
  /** One URL per service, with that service's rights. Empty texts when the database is not migrated. */
  readonly urls: Readonly<Record<ServiceRole, string>>
  /** Throws away the database and its logins. */
  drop(): Promise<void>
}

/** Where policy's tests find what they need, with policy's own rights. */
export function policyPlaces({ adminUrl, urls }: TestDatabase) {
  const [redisUrl, registryUrl] = [setting('REDIS_URL'), setting('WEIR_SCHEMA_REGISTRY_URL')]
  return { adminUrl, policyUrl: urls.policy, redisUrl, registryUrl }
}

const quiet: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => quiet }

/** Creates a database on the server of DATABASE_URL, migrated and with logins unless `migrated` is false. */
export async function createTestDatabase(options: { readonly migrated?: boolean } = {}): Promise<TestDatabase> {
  const server = setting('DATABASE_URL')
  const name = `weir_t_${randomBytes(6).toString('hex')}`
  await onServer(server, async db => void (await db.query(`create database ${name}`)))
  const url = new URL(server)
  url.pathname = `/${name}`
  const adminUrl = url.href
  const drop = async (): Promise<void> => await dropDatabase(server, name)
  try {
    const urls = options.migrated === false ? noUrls() : await prepare(adminUrl)
    return { name, adminUrl, urls, drop }
  } catch (error) {
    await drop()
    throw error
  }
}

function noUrls(): Record<ServiceRole, string> {
  return Object.fromEntries(serviceRoles.map(role => [role, ''])) as Record<ServiceRole, string>
}

async function prepare(adminUrl: string): Promise<Record<ServiceRole, string>> {
  await migrate({ adminUrl, log: quiet })
  const passwords = serviceRoles.map(role => [role, randomBytes(16).toString('hex')])
  return await ensureLogins({ adminUrl, passwords: Object.fromEntries(passwords) as Record<ServiceRole, string> })
}

async function dropDatabase(server: string, name: string): Promise<void> {
  await onServer(server, async db => {
    await db.query(`drop database if exists ${name} with (force)`)
    for (const role of serviceRoles) await db.query(`drop role if exists ${loginName(name, role)}`)
  })
}

async function onServer(server: string, work: (db: Database) => Promise<void>): Promise<void> {
  const db = openDatabase({ url: server, applicationName: 'weir tests', maxConnections: 1, statementTimeoutMs: 60_000 })
  try {
    await work(db)
  } finally {
    await db.close()
  }
}
