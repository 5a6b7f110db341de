// The native stack, started from nothing in a folder of its own, beside whatever else runs on this machine.
import { mkdtempSync, rmSync } from 'node:fs'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { topicNames } from '@weir/core'
import { connectBroker, ensureTopics, pushSchemas, topicSpecs } from '@weir/kafka'
import { accepts, dropStack, startStack, toolsDirOf, type DataPolicy, type Stack } from '@weir/ops'
import { openDatabase } from '@weir/postgres'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { quietLog } from './support/system.ts'

const checkout = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '')
const topics = topicNames('stack.')
let folder: string
let stack: Stack | null = null

const start = async (data: DataPolicy): Promise<Stack> => {
  stack = await startStack({
    // A blank in the path: a checkout may have one.
    stateDir: join(folder, 'the stack'),
    toolsDir: toolsDirOf(checkout),
    data,
    env: {},
    progress: { line: () => undefined },
    signal: new AbortController().signal,
  })
  return stack
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'weir-stack-'))
})
afterAll(async () => {
  await stack?.stop()
  await dropStack(join(folder, 'the stack'))
  rmSync(folder, { recursive: true, force: true })
})

const hostPort = (address: string): [port: number, host: string] => {
  const [, host = '', port = ''] = /([\d.]+):(\d+)(?:\/|$)/.exec(address) ?? []
  return [Number(port), host]
}

const redisAnswer = (url: string, command: string): Promise<string> => {
  const [port, host] = hostPort(url)
  return new Promise((resolve, reject) => {
    const socket = createConnection({ port, host }, () => socket.write(`${command}\r\n`))
    socket.once('error', reject)
    socket.once('data', answer => {
      socket.destroy()
      resolve(answer.toString('utf8'))
    })
  })
}

const query = async (url: string, sql: string): Promise<unknown[]> => {
  const db = openDatabase({ url, applicationName: 'weir-test', maxConnections: 1 })
  try {
    return await db.query(sql)
  } finally {
    await db.close()
  }
}

const logIds = async (brokers: string): Promise<readonly string[]> => {
  const broker = connectBroker({ brokers: brokers.split(','), clientId: 'stack-test', log: quietLog })
  try {
    return (await broker.admin.describe([topics.raw])).map(({ logId }) => logId)
  } finally {
    await broker.close()
  }
}

describe('the native stack', { timeout: 240_000 }, () => {
  it('starts, answers, keeps its data and its ports when asked to, and leaves no process', async () => {
    const first = await start('kept')
    const { urls, modes, supervisor } = first
    expect(new Set(Object.values(modes))).toEqual(new Set(['native']))
    expect(supervisor.running().toSorted()).toEqual(['kafka', 'postgres', 'redis', 'registry'])

    const brokers = urls.WEIR_KAFKA_BROKERS.split(',')
    const specs = topicSpecs(topics, { partitions: 2, replicationFactor: 1, minInsyncReplicas: 1, agents: [] })
    await ensureTopics({ brokers, clientId: 'stack-test', log: quietLog, specs })
    const ids = await logIds(urls.WEIR_KAFKA_BROKERS)
    const schemas = await pushSchemas({ registryUrl: urls.WEIR_SCHEMA_REGISTRY_URL })
    await query(urls.DATABASE_URL, 'create table public.kept (n int)')
    expect(await query(urls.DATABASE_URL, 'show synchronous_commit')).toEqual([{ synchronous_commit: 'on' }])
    expect(await query(urls.DATABASE_URL, 'show fsync')).toEqual([{ fsync: 'on' }])
    expect(await redisAnswer(urls.REDIS_URL, 'CONFIG GET maxmemory-policy')).toContain('noeviction')
    await first.stop()
    expect(supervisor.running()).toEqual([])

    const again = await start('kept')
    expect(again.urls).toEqual(urls)
    expect(await logIds(again.urls.WEIR_KAFKA_BROKERS)).toEqual(ids)
    expect(await pushSchemas({ registryUrl: again.urls.WEIR_SCHEMA_REGISTRY_URL })).toEqual(schemas)
    expect(await query(again.urls.DATABASE_URL, 'select n from public.kept')).toEqual([])
    await again.stop()
    for (const url of Object.values(urls)) expect(await accepts(...hostPort(url))).toBe(false)
  })

  it('refuses a database login without the password', async () => {
    const again = await start('kept')
    const url = new URL(again.urls.DATABASE_URL)
    url.password = 'wrong'
    await expect(query(url.href, 'select 1')).rejects.toThrow(/password authentication failed|database_unavailable/)
    await again.stop()
  })
})
