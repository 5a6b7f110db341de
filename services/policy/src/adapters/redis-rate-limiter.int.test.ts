import { randomBytes } from 'node:crypto'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import type { BudgetConfiguration, Log } from '@weir/core'
import { createMetrics } from '@weir/runtime'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { setting } from '../../../../test/support/setting.ts'
import { until } from '../../../../test/support/until.ts'
import { rateScopes } from '../domain/budgets.ts'
import { createPolicyMetrics } from '../metrics.ts'
import type { RateRequest } from '../ports.ts'
import { RedisRateLimiter } from './redis-rate-limiter.ts'

const keyPrefix = `limiter-test-${randomBytes(4).toString('hex')}.`
const logged: string[] = []
const log: Log = {
  debug: () => {},
  info: (_, message) => void logged.push(message),
  warn: (_, message) => void logged.push(message),
  error: () => {},
  child: () => log,
}

/** Redis behind a cable that can be pulled without either side noticing. */
const server = createServer(client => {
  const upstream = connect(redisPort(), redisHost())
  for (const socket of [client, upstream]) socket.on('error', () => socket.destroy())
  client.on('data', bytes => void (isFrozen || upstream.write(bytes)))
  upstream.on('data', bytes => void (isFrozen || client.write(bytes)))
  client.on('close', () => upstream.destroy())
  sockets.push(client, upstream)
})
const sockets: Socket[] = []
let isFrozen = false
let limiter: RedisRateLimiter

const redisUrl = (): URL => new URL(setting('REDIS_URL'))
const redisPort = (): number => Number(redisUrl().port === '' ? 6379 : redisUrl().port)
const redisHost = (): string => redisUrl().hostname

beforeAll(async () => {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const url = `redis://127.0.0.1:${(server.address() as AddressInfo).port}`
  const metrics = createPolicyMetrics(createMetrics('limiter-test'))
  limiter = new RedisRateLimiter({ redisUrl: url, keyPrefix, log, metrics })
  await limiter.warmUp()
})

afterAll(async () => {
  const redis = new Redis(redisUrl().href)
  const keys = await redis.keys(`${keyPrefix}*`)
  if (keys.length > 0) await redis.del(...keys)
  redis.disconnect()
  await limiter.close()
  for (const socket of sockets) socket.destroy()
  server.close()
})

let lastNumber = 0
const rate = (scope: 'tenant' | 'run', burst: number): BudgetConfiguration => ({
  kind: 'rate',
  name: `rate-${lastNumber++}`,
  scope,
  tenants: [],
  limit: 1,
  periodSeconds: 3_600,
  burst,
})

function requests(budgets: readonly BudgetConfiguration[], count: number, group?: string): RateRequest[] {
  return Array.from({ length: count }, () => {
    const id = `decision-${lastNumber++}:0`
    return { id, tenant: 'acme', group: group ?? id, scopes: rateScopes(budgets, { tenant: 'acme', run: 'r' }) }
  })
}
const kindsOf = async (asked: readonly RateRequest[]): Promise<string[]> =>
  (await limiter.ask(asked, Date.now())).map(({ kind }) => kind)

describe('the limiter', () => {
  it('lets a burst pass and reserves one slot after the other, an interval apart', async () => {
    const answers = await limiter.ask(requests([rate('tenant', 2)], 4), Date.now())
    const slots = answers.flatMap(answer => (answer.kind === 'reserved' ? [answer.slotMs] : []))
    expect(answers.map(({ kind }) => kind)).toEqual(['passed', 'passed', 'reserved', 'reserved'])
    expect((slots[1] ?? 0) - (slots[0] ?? 0)).toBe(3_600_000)
  })

  it('gives a resend the first answer and takes nothing for it', async () => {
    const budgets = [rate('tenant', 1)]
    const asked = requests(budgets, 2)
    const first = await limiter.ask(asked, Date.now())
    for (let i = 0; i < 5; i++) expect(await limiter.ask(asked, Date.now())).toEqual(first)
    const [next] = await limiter.ask(requests(budgets, 1), Date.now())
    const second = first[1]
    if (next?.kind !== 'reserved' || second?.kind !== 'reserved') throw new Error('no slot was reserved')
    expect(next.slotMs - second.slotMs).toBe(3_600_000)
  })

  it('does not ask for what comes behind one of the same group that has to wait', async () => {
    const budgets = [rate('tenant', 1)]
    expect(await kindsOf(requests(budgets, 3, 'one'))).toEqual(['passed', 'reserved', 'behind'])
  })

  it('names the rate that makes a delivery wait longest', async () => {
    const [wide, narrow] = [rate('tenant', 10), rate('run', 1)]
    const answers = await limiter.ask(requests([wide, narrow], 2), Date.now())
    expect(answers[1]).toMatchObject({ kind: 'reserved', scope: { rule: narrow.name }, used: 1 })
  })

  it('answers from a local share when Redis is silent, in time, and logs each change once', async () => {
    const budgets = [rate('tenant', 2)]
    limiter.setShare(0.5)
    logged.length = 0
    isFrozen = true
    const started = performance.now()
    const answers = await limiter.ask(requests(budgets, 2), Date.now())
    await limiter.ask(requests(budgets, 1), Date.now())
    expect(performance.now() - started).toBeLessThan(1_000)
    expect(answers.map(({ kind }) => kind)).toEqual(['passed', 'reserved'])
    expect(answers[0]).toMatchObject({ degraded: true })
    isFrozen = false
    for (const socket of sockets.splice(0)) socket.destroy()
    await until('Redis to answer again', async () => {
      const [answer] = await limiter.ask(requests([rate('tenant', 1)], 1), Date.now())
      return answer?.kind === 'passed' && !answer.degraded
    })
    expect(logged).toEqual([
      'the rate limiter does not answer: local share of each rate',
      'the rate limiter answers again',
    ])
  })
})
