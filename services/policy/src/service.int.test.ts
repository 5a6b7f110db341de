import { randomBytes } from 'node:crypto'
import { formatUuid, type BudgetConfiguration, type RouteConfiguration } from '@weir/core'
import { createCodec, pushSchemas, type Codec } from '@weir/kafka'
import { createOwnerStore, openDatabase, type Database } from '@weir/postgres'
import { createMetrics } from '@weir/runtime'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/support/database.ts'
import { createAvroPolicyCodec } from './adapters/avro-policy-codec.ts'
import { PostgresPolicyLedger } from './adapters/postgres-policy-ledger.ts'
import { RedisRateLimiter } from './adapters/redis-rate-limiter.ts'
import { eventOf, PartitionBench, topics, type BenchOptions } from './adapters/testing/partition-bench.ts'
import { createPolicyMetrics } from './metrics.ts'

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => silent }
const metrics = createPolicyMetrics(createMetrics('policy-test'))
const keyPrefix = `policy-test-${randomBytes(4).toString('hex')}.`
const env = (name: string): string => {
  const value = process.env[name]
  if (value === undefined || value === '') throw new Error(`${name} is not set: start the services with ./weir up`)
  return value
}

let test: TestDatabase
let db: Database
let admin: Database
let codec: Codec
let limiter: RedisRateLimiter
let redis: Redis
let nextPartition = 0

beforeAll(async () => {
  test = await createTestDatabase()
  db = openDatabase({ url: test.urls.policy, applicationName: 'policy test' })
  admin = openDatabase({ url: test.adminUrl, applicationName: 'policy test admin', maxConnections: 2 })
  await pushSchemas({ registryUrl: env('WEIR_SCHEMA_REGISTRY_URL') })
  codec = await createCodec({ registryUrl: env('WEIR_SCHEMA_REGISTRY_URL'), log: silent })
  limiter = new RedisRateLimiter({ redisUrl: env('REDIS_URL'), keyPrefix, log: silent, metrics })
  await limiter.warmUp()
  redis = new Redis(env('REDIS_URL'))
})

afterAll(async () => {
  await emptyRedis()
  redis.disconnect()
  await limiter.close()
  await db.close()
  await admin.close()
  await test.drop()
})

async function emptyRedis(): Promise<number> {
  const keys = await redis.keys(`${keyPrefix}*`)
  return keys.length === 0 ? 0 : await redis.del(...keys)
}

const toTriage: RouteConfiguration = {
  ...{ name: 'all', tenant: 'acme', sources: ['github'], types: ['*'], agents: ['triage'] },
}
const uuid = (): string => formatUuid(randomBytes(16))

interface World {
  readonly budgets?: readonly BudgetConfiguration[]
  readonly routes?: readonly RouteConfiguration[]
}

function benchOptions({ budgets = [], routes = [toTriage] }: World = {}): BenchOptions {
  return {
    ...{ routes, rules: { budgets, maxHops: 3 }, configVersion: 'v1', limiter, log: silent, metrics },
    ledger: new PostgresPolicyLedger(db),
    codec: createAvroPolicyCodec(codec),
    clock: { nowMs: () => Date.now() },
    faultPoint: () => undefined,
    rawCodec: codec,
    owners: createOwnerStore(db),
    partition: nextPartition++,
    logIds: { events: uuid(), released: uuid() },
  }
}

async function newBench(world: World = {}): Promise<PartitionBench> {
  const bench = new PartitionBench(benchOptions(world))
  await bench.takeOver()
  return bench
}

let budgetNumber = 0
const ceiling = (limit: number, onExhaust: 'deny' | 'defer' = 'deny', more: object = {}): BudgetConfiguration => ({
  kind: 'ceiling',
  name: `ceiling-${budgetNumber++}`,
  scope: 'tenant',
  tenants: [],
  limit,
  window: onExhaust === 'deny' ? 'none' : 'day',
  onExhaust,
  ...more,
})
const rateOf = (limit: number, periodSeconds: number, burst: number): BudgetConfiguration => ({
  ...{ kind: 'rate', name: `rate-${budgetNumber++}`, scope: 'tenant', tenants: [], limit, periodSeconds, burst },
})

const names = (count: number, prefix = 'e'): string[] => Array.from({ length: count }, (_, i) => `${prefix}${i}`)
let run = 0
const freshNames = (count: number): string[] => names(count, `r${run++}-`)

const rowsOf = async (bench: PartitionBench): Promise<unknown> => ({
  verdicts: await admin.query('select * from policy.verdict where partition = $1 order by decision_id, attempt', [
    bench.ownership.partition,
  ]),
  waiting: await admin.query(
    'select decision_id, agent, ordering_key, tenant, log_id, "offset", event, not_before_ms, rate_reserved, next_attempt, ended_attempt ' +
      'from policy.waiting where partition = $1 order by decision_id',
    [bench.ownership.partition],
  ),
  charges: await admin.query(
    'select c.charge_id, c.budget, c.window_start_ms, c.amount, c.attempt, c.voided_at_ms from policy.charge c join policy.verdict v ' +
      'on v.decision_id = c.charge_id and v.attempt = c.attempt where v.partition = $1 order by 1, 2',
    [bench.ownership.partition],
  ),
})

const usedOf = async (budget: BudgetConfiguration): Promise<number> => {
  const [row] = await admin.query<{ used: number }>(
    `select coalesce(sum(used), 0)::int as used from policy.budget where budget like $1 || '/%'`,
    [budget.name],
  )
  return row?.used ?? 0
}

const waitingCount = async (bench: PartitionBench): Promise<number> => {
  const [row] = await admin.query<{ n: number }>('select count(*)::int as n from policy.waiting where partition = $1', [
    bench.ownership.partition,
  ])
  return row?.n ?? 0
}

/** Makes everything of this partition due. */
const makeDue = (bench: PartitionBench): Promise<unknown> =>
  admin.query('update policy.waiting set not_before_ms = 0 where partition = $1 and not_before_ms is not null', [
    bench.ownership.partition,
  ])

describe('verdicts', () => {
  it('deliver an event to every routed agent as it came, and record each decision', async () => {
    const both = { ...toTriage, name: 'both', agents: ['triage', 'watch'] }
    const bench = await newBench({ routes: [toTriage, both] })
    const [name = ''] = freshNames(1)
    const event = eventOf(name, { data: Buffer.alloc(0), run: 'run-1' })
    bench.send(event)
    const records = await bench.step('events')
    expect(bench.delivered('triage')).toEqual([name])
    expect(bench.delivered('watch')).toEqual([name])
    const record = records.find(({ topic }) => topic === `${topics.agentPrefix}triage`)
    const headers = Object.fromEntries(record?.headers.map(([key, value]) => [key, value.toString()]) ?? [])
    expect(record?.value).toEqual(Buffer.alloc(0))
    expect(headers).toMatchObject({
      ...{ ce_specversion: '1.0', ce_id: event.eventKey.toString('hex'), ce_type: 'issues.opened', ce_attempt: '0' },
      ...{ ce_time: '2000-02-29T00:00:00.123Z', ce_runid: 'run-1', 'content-type': 'application/json' },
    })
    expect(bench.decisions().map(({ agent, verdict, agents }) => ({ agent, verdict, agents }))).toEqual([
      { agent: 'triage', verdict: 'allow', agents: ['triage', 'watch'] },
      { agent: 'watch', verdict: 'allow', agents: ['triage', 'watch'] },
    ])
  })

  it('stay with the agents stored at first, also when routes change before a re-read', async () => {
    const bench = await newBench()
    bench.send(eventOf(freshNames(1)[0] ?? ''))
    const first = await bench.claim('events')
    await bench.takeOver({ routes: [{ ...toTriage, agents: ['watch'] }] })
    expect(await bench.claim('events')).toEqual(first)
  })

  it('record an event that no route takes, and one that looks like a loop', async () => {
    const bench = await newBench()
    const [unrouted = '', looping = ''] = freshNames(2)
    bench.send(eventOf(unrouted, { source: 'stripe' }))
    bench.send(eventOf(looping, { hops: 4 }))
    await bench.step('events')
    expect(bench.decisions().map(({ verdict, agent, reasons }) => [verdict, agent, reasons[0]?.code])).toEqual([
      ['unrouted', null, 'no_route'],
      ['deny', 'triage', 'too_many_hops'],
    ])
  })

  it('park what is not readable, and the partition goes on', async () => {
    const bench = await newBench()
    const [bad = '', good = ''] = freshNames(2)
    bench.send(eventOf(bad, { type: 'nul\u0000' }))
    bench.logs.events.push({ ...bench.send(eventOf(bad)), value: Buffer.from('not avro'), offset: 2 })
    bench.logs.events[1] = { ...(bench.logs.events[1] as never as object), value: null } as never
    bench.send(eventOf(good))
    await bench.step('events')
    expect(bench.outputs.filter(({ topic }) => topic === topics.parked)).toHaveLength(3)
    expect(bench.delivered('triage')).toEqual([good])
  })

  it('are the same for any split of a re-read, and so is the ledger', async () => {
    const budget = ceiling(7)
    const bench = await newBench({ budgets: [budget] })
    for (const name of freshNames(12)) bench.send(eventOf(name))
    const first = await bench.claim('events')
    const rows = await rowsOf(bench)
    await bench.takeOver()
    for (const limit of [5, 4, 3]) await bench.step('events', limit)
    expect(bench.outputs).toEqual(first)
    expect(await rowsOf(bench)).toEqual(rows)
    expect(await usedOf(budget)).toBe(7)
  })

  it('are not given to a repeat of an event at another offset', async () => {
    const budget = ceiling(5)
    const bench = await newBench({ budgets: [budget] })
    const [name = ''] = freshNames(1)
    bench.send(eventOf(name))
    bench.send(eventOf(name))
    await bench.step('events')
    bench.send(eventOf(name))
    await bench.step('events')
    expect(bench.delivered('triage')).toEqual([name])
    expect(await usedOf(budget)).toBe(1)
  })
})

describe('ceilings', () => {
  it('hold exactly under 200 events at once from two owners of different partition numbers', async () => {
    const budget = ceiling(50)
    const owners = await Promise.all([newBench({ budgets: [budget] }), newBench({ budgets: [budget] })])
    for (const [i, name] of freshNames(200).entries()) owners[i % 2]?.send(eventOf(name))
    await Promise.all(
      owners.map(async owner => {
        while (owner.batch('events').records.length > 0) await owner.step('events', 7)
      }),
    )
    const decisions = owners.flatMap(owner => owner.decisions())
    const denied = decisions.filter(({ verdict }) => verdict === 'deny')
    expect(decisions.filter(({ verdict }) => verdict === 'allow')).toHaveLength(50)
    expect(denied).toHaveLength(150)
    expect(new Set(denied.map(({ reasons }) => reasons[0]?.rule))).toEqual(new Set([budget.name]))
    expect(denied[0]?.reasons[0]).toMatchObject({ gate: 'ceiling', limit: 50, used: 50, windowStartMs: 0 })
    expect(owners.flatMap(owner => owner.delivered('triage'))).toHaveLength(50)
    expect(await usedOf(budget)).toBe(50)
  })

  it('are all charged or none', async () => {
    const wide = ceiling(100)
    const perRun = ceiling(2, 'deny', { scope: 'run' })
    const bench = await newBench({ budgets: [wide, perRun] })
    const runId = freshNames(1)[0] ?? ''
    for (const name of freshNames(5)) bench.send(eventOf(name, { run: runId }))
    await bench.step('events')
    expect(bench.delivered('triage')).toHaveLength(2)
    expect([await usedOf(wide), await usedOf(perRun)]).toEqual([2, 2])
  })

  it('charge an event once per agent', async () => {
    const budget = ceiling(10)
    const bench = await newBench({ budgets: [budget], routes: [{ ...toTriage, agents: ['a', 'b', 'c'] }] })
    bench.send(eventOf(freshNames(1)[0] ?? ''))
    await bench.step('events')
    expect(await usedOf(budget)).toBe(3)
  })

  it('defer until the window ends where the rule says so, and what comes behind waits too', async () => {
    const budget = ceiling(1, 'defer')
    const bench = await newBench({ budgets: [budget] })
    const [a = '', b = '', c = ''] = freshNames(3)
    for (const name of [a, b, c]) bench.send(eventOf(name, { object: 'one' }))
    await bench.step('events')
    const [, second, third] = bench.decisions()
    expect(bench.delivered('triage')).toEqual([a])
    expect((second?.notBeforeMs ?? 0) % 86_400_000).toBe(0)
    expect([third?.verdict, third?.reasons[0]?.code, third?.notBeforeMs]).toEqual(['defer', 'behind', null])
  })
})

describe('an owner that was replaced', () => {
  it('writes nothing', async () => {
    const budget = ceiling(5)
    const bench = await newBench({ budgets: [budget] })
    const zombie = { handler: bench.handler, context: bench.context() }
    bench.send(eventOf(freshNames(1)[0] ?? ''))
    await bench.takeOver()
    expect(await zombie.handler.claim(bench.batch('events'), zombie.context)).toEqual({ kind: 'fenced' })
    expect(await rowsOf(bench)).toEqual({ verdicts: [], waiting: [], charges: [] })
    expect(await usedOf(budget)).toBe(0)
    await bench.step('events')
    expect(bench.delivered('triage')).toHaveLength(1)
  })
})

describe('deliveries that wait', () => {
  /** One passes, the others are deferred by a rate that is as good as closed. */
  async function waitingBench(count: number): Promise<{ bench: PartitionBench; all: string[] }> {
    const bench = await newBench({ budgets: [rateOf(1, 3_600, 1)] })
    const all = freshNames(count)
    for (const name of all) bench.send(eventOf(name, { object: 'one' }))
    await bench.step('events')
    return { bench, all }
  }

  it('leave in order, and nothing overtakes', async () => {
    const { bench, all } = await waitingBench(5)
    expect(bench.delivered('triage')).toEqual(all.slice(0, 1))
    for (let i = 0; i < 12 && bench.delivered('triage').length < 5; i++) {
      await makeDue(bench)
      await bench.round()
      if (i === 1) {
        const late = freshNames(1)[0] ?? ''
        all.push(late)
        bench.send(eventOf(late, { object: 'one' }))
      }
    }
    for (let i = 0; i < 6; i++) {
      await makeDue(bench)
      await bench.round()
    }
    expect(bench.delivered('triage')).toEqual(all)
    expect(await waitingCount(bench)).toBe(0)
  })

  it('hold up later events while a claimed release is not known committed', async () => {
    const { bench, all } = await waitingBench(2)
    await makeDue(bench)
    await bench.tick()
    await bench.claim('released')
    await bench.takeOver()
    const later = freshNames(1)[0] ?? ''
    bench.send(eventOf(later, { object: 'one' }))
    await bench.step('events')
    expect(bench.delivered('triage')).toEqual(all.slice(0, 1))
    await bench.tick()
    expect(bench.logs.released).toHaveLength(1)
    for (let i = 0; i < 6; i++) {
      await bench.round()
      await makeDue(bench)
    }
    expect(bench.delivered('triage')).toEqual([...all, later])
  })

  it('are cleared by the next owner when the last one ended between commit and deletion', async () => {
    const { bench } = await waitingBench(2)
    await makeDue(bench)
    await bench.tick()
    const batch = bench.batch('released')
    bench.outputs.push(...(await bench.claim('released')))
    bench.committed.released = batch.records.length
    expect(await waitingCount(bench)).toBe(1)
    await bench.takeOver()
    expect(await waitingCount(bench)).toBe(0)
  })

  it('are not released before their own event is known committed', async () => {
    const bench = await newBench({ budgets: [rateOf(1, 3_600, 1)] })
    for (const name of freshNames(2)) bench.send(eventOf(name, { object: 'one' }))
    await bench.claim('events')
    await makeDue(bench)
    await bench.tick()
    expect(bench.logs.released).toHaveLength(0)
    await bench.step('events')
    await bench.tick()
    expect(bench.logs.released).toHaveLength(1)
  })

  it('are produced again under the same attempt when a release is not claimed, and count once', async () => {
    const { bench, all } = await waitingBench(2)
    await makeDue(bench)
    await bench.tick()
    await bench.tick()
    expect(bench.logs.released).toHaveLength(1)
    await admin.query('update policy.waiting set released_at_ms = released_at_ms - 11000 where partition = $1', [
      bench.ownership.partition,
    ])
    await bench.tick()
    expect(bench.logs.released).toHaveLength(2)
    await bench.step('released', 1)
    await bench.step('released', 1)
    expect(bench.delivered('triage')).toEqual(all)
  })

  it('keep agents and ordering keys apart', async () => {
    const bench = await newBench({ budgets: [rateOf(1, 3_600, 2)] })
    const [a = '', b = '', c = ''] = freshNames(3)
    bench.send(eventOf(a, { object: 'one' }))
    bench.send(eventOf(b, { object: 'two' }))
    bench.send(eventOf(c, { object: 'two' }))
    await bench.step('events')
    expect(bench.delivered('triage')).toEqual([a, b])
    expect(bench.decisions().at(-1)?.reasons[0]).toMatchObject({ gate: 'rate', code: 'slot_reserved' })
  })
})

describe('rates', () => {
  it('let no more pass than burst and limit allow, and reserve slots in order', async () => {
    const bench = await newBench({ budgets: [rateOf(10, 1, 4)] })
    for (const name of freshNames(12)) bench.send(eventOf(name))
    await bench.step('events')
    const slots = bench.decisions().flatMap(({ notBeforeMs }) => (notBeforeMs === null ? [] : [notBeforeMs]))
    expect(bench.delivered('triage')).toHaveLength(4)
    expect(slots).toHaveLength(8)
    for (const [i, slot] of slots.slice(1).entries()) expect(slot - (slots[i] ?? 0)).toBeGreaterThanOrEqual(99)
  })

  it('decide no delivery: with Redis emptied in the middle the same set is delivered', async () => {
    const bench = await newBench({ budgets: [rateOf(5, 3_600, 2)] })
    const all = freshNames(9)
    for (const [i, name] of all.entries()) bench.send(eventOf(name, { object: `o${i % 3}` }))
    await bench.step('events', 4)
    expect(await emptyRedis()).toBeGreaterThan(0)
    await bench.step('events')
    for (let i = 0; i < 20 && bench.delivered('triage').length < all.length; i++) {
      await makeDue(bench)
      await bench.round()
      await emptyRedis()
    }
    expect(bench.delivered('triage').toSorted()).toEqual(all.toSorted())
    for (const object of [0, 1, 2]) {
      const mine = all.filter((_, i) => i % 3 === object)
      expect(bench.delivered('triage').filter(name => mine.includes(name))).toEqual(mine)
    }
  })

  it('fall back to a local share while Redis is away, and say so', async () => {
    const away = new RedisRateLimiter({ redisUrl: 'redis://127.0.0.1:1', keyPrefix, log: silent, metrics })
    const bench = new PartitionBench({ ...benchOptions({ budgets: [rateOf(600, 1, 12)] }), limiter: away })
    await bench.takeOver()
    for (const name of freshNames(5)) bench.send(eventOf(name))
    await bench.step('events')
    await away.close()
    expect(bench.delivered('triage')).toHaveLength(2)
    expect(bench.decisions().every(({ reasons }) => reasons.some(({ code }) => code === 'degraded'))).toBe(true)
  })
})

describe('a rebuild', () => {
  it('restores exactly what Postgres lost, once', async () => {
    const budget = ceiling(4)
    const bench = await newBench({ budgets: [budget, rateOf(1, 3_600, 5)] })
    for (const [i, name] of freshNames(9).entries()) bench.send(eventOf(name, { object: `o${i % 2}` }))
    await bench.step('events')
    await makeDue(bench)
    await bench.round()
    const all = await bench.handler.rebuild(bench.asOutputs(), bench.ownership)
    expect(all.restored).toBe(0)
    const before = await rowsOf(bench)
    const used = await usedOf(budget)
    const { partition } = bench.ownership
    await admin.query('delete from policy.waiting where partition = $1', [partition])
    await admin.query(
      'update policy.budget b set used = used - s.n from (select budget, count(*) as n from policy.charge c join policy.verdict v ' +
        'on v.decision_id = c.charge_id where v.partition = $1 and v."offset" > 1 group by 1) s where s.budget = b.budget',
      [partition],
    )
    await admin.query(
      'delete from policy.charge c using policy.verdict v where v.decision_id = c.charge_id and v.partition = $1 and v."offset" > 1',
      [partition],
    )
    await admin.query('delete from policy.verdict where partition = $1 and "offset" > 1', [partition])
    await bench.takeOver()
    expect((await bench.handler.rebuild(bench.asOutputs(), bench.ownership)).restored).toBeGreaterThan(0)
    expect(await usedOf(budget)).toBe(used)
    // Due times were moved by the test itself; all else is as it was.
    await makeDue(bench)
    expect(await rowsOf(bench)).toEqual(before)
    expect((await bench.handler.rebuild(bench.asOutputs(), bench.ownership)).restored).toBe(0)
  })
})

describe('an agent topic that refuses', () => {
  it('parks its deliveries, voids their charges, and the partition goes on', async () => {
    const budget = ceiling(10)
    const bench = await newBench({ budgets: [budget], routes: [{ ...toTriage, agents: ['triage', 'gone'] }] })
    for (const name of freshNames(3)) bench.send(eventOf(name))
    const batch = bench.batch('events')
    await bench.claim('events')
    const verdict = await bench.handler.reroute(batch, bench.context(), `${topics.agentPrefix}gone`, 'topic_missing')
    if (verdict.kind === 'fenced') throw new Error('fenced')
    expect(verdict.records.some(({ topic }) => topic === `${topics.agentPrefix}gone`)).toBe(false)
    expect(verdict.records.filter(({ topic }) => topic === topics.parked)).toHaveLength(3)
    expect(await usedOf(budget)).toBe(3)
    await bench.takeOver()
    expect(await bench.step('events')).toEqual(verdict.records)
    expect(bench.delivered('triage')).toHaveLength(3)
    const parked = bench.decisions().filter(row => row.verdict === 'parked')
    expect(parked.map(({ charges, reasons }) => [charges, reasons[0]?.code])).toEqual(
      names(3).map(() => [[], 'topic_missing']),
    )
  })
})
