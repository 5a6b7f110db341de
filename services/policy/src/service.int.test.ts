import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase, policyPlaces, type TestDatabase } from '../../../test/support/database.ts'
import { eventOf, topics } from './adapters/testing/partition-bench.ts'
import { createPolicyFixture, toTriage, type PolicyFixture } from './adapters/testing/policy-fixture.ts'

let test: TestDatabase
let fixture: PolicyFixture

beforeAll(async () => {
  test = await createTestDatabase()
  fixture = await createPolicyFixture(policyPlaces(test))
})

afterAll(async () => {
  await fixture.close()
  await test.drop()
})

describe('verdicts', () => {
  it('deliver an event to every routed agent as it came, and record each decision', async () => {
    const both = { ...toTriage, name: 'both', agents: ['triage', 'watch'] }
    const bench = await fixture.newBench({ routes: [toTriage, both] })
    const [name = ''] = fixture.freshNames(1)
    const event = eventOf(name, { data: Buffer.alloc(0), run: 'run-1' })
    bench.send(event)
    const records = await bench.step('events')
    expect(bench.delivered('triage')).toEqual([name])
    expect(bench.delivered('watch')).toEqual([name])
    const record = records.find(({ topic }) => topic === `${topics.agentPrefix}triage`)
    const headers = Object.fromEntries(record?.headers.map(([key, value]) => [key, value.toString()]) ?? [])
    expect(record?.value).toEqual(Buffer.alloc(0))
    expect(headers).toMatchObject({
      ce_specversion: '1.0',
      ce_id: event.eventKey.toString('hex'),
      ce_type: 'issues.opened',
      ce_attempt: '0',
      ce_time: '2000-02-29T00:00:00.123Z',
      ce_runid: 'run-1',
      'content-type': 'application/json',
    })
    expect(bench.decisions().map(({ agent, verdict, agents }) => ({ agent, verdict, agents }))).toEqual([
      { agent: 'triage', verdict: 'allow', agents: ['triage', 'watch'] },
      { agent: 'watch', verdict: 'allow', agents: ['triage', 'watch'] },
    ])
  })

  it('stay with the agents stored at first, also when routes change before a re-read', async () => {
    const bench = await fixture.newBench()
    bench.send(eventOf(fixture.freshNames(1)[0] ?? ''))
    const first = await bench.claim('events')
    await bench.takeOver({ routes: [{ ...toTriage, agents: ['watch'] }] })
    expect(await bench.claim('events')).toEqual(first)
  })

  it('record an event that no route takes, and one that looks like a loop', async () => {
    const bench = await fixture.newBench()
    const [unrouted = '', looping = ''] = fixture.freshNames(2)
    bench.send(eventOf(unrouted, { source: 'stripe' }))
    bench.send(eventOf(looping, { hops: 4 }))
    await bench.step('events')
    expect(bench.decisions().map(({ verdict, agent, reasons }) => [verdict, agent, reasons[0]?.code])).toEqual([
      ['unrouted', null, 'no_route'],
      ['deny', 'triage', 'too_many_hops'],
    ])
  })

  it('park what is not readable, and the partition goes on', async () => {
    const bench = await fixture.newBench()
    const [bad = '', good = ''] = fixture.freshNames(2)
    bench.send(eventOf(bad, { type: 'nul\u0000' }))
    bench.logs.events.push({ ...bench.send(eventOf(bad)), value: Buffer.from('not avro'), offset: 2 })
    bench.logs.events[1] = { ...(bench.logs.events[1] as never as object), value: null } as never
    bench.send(eventOf(good))
    await bench.step('events')
    expect(bench.outputs.filter(({ topic }) => topic === topics.parked)).toHaveLength(3)
    expect(bench.delivered('triage')).toEqual([good])
  })

  it('are the same for any split of a re-read, and so is the ledger', async () => {
    const budget = fixture.ceiling(7)
    const bench = await fixture.newBench({ budgets: [budget] })
    for (const name of fixture.freshNames(12)) bench.send(eventOf(name))
    const first = await bench.claim('events')
    const rows = await fixture.rowsOf(bench)
    await bench.takeOver()
    for (const limit of [5, 4, 3]) await bench.step('events', limit)
    expect(bench.outputs).toEqual(first)
    expect(await fixture.rowsOf(bench)).toEqual(rows)
    expect(await fixture.usedOf(budget)).toBe(7)
  })

  it('are not given to a repeat of an event at another offset', async () => {
    const budget = fixture.ceiling(5)
    const bench = await fixture.newBench({ budgets: [budget] })
    const [name = ''] = fixture.freshNames(1)
    bench.send(eventOf(name))
    bench.send(eventOf(name))
    await bench.step('events')
    bench.send(eventOf(name))
    await bench.step('events')
    expect(bench.delivered('triage')).toEqual([name])
    expect(await fixture.usedOf(budget)).toBe(1)
  })
})

describe('ceilings', () => {
  it('hold exactly under 200 events at once from two owners of different partition numbers', async () => {
    const budget = fixture.ceiling(50)
    const owners = await Promise.all([fixture.newBench({ budgets: [budget] }), fixture.newBench({ budgets: [budget] })])
    for (const [i, name] of fixture.freshNames(200).entries()) owners[i % 2]?.send(eventOf(name))
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
    expect(await fixture.usedOf(budget)).toBe(50)
  })

  it('are all charged or none', async () => {
    const wide = fixture.ceiling(100)
    const perRun = fixture.ceiling(2, 'deny', 'run')
    const bench = await fixture.newBench({ budgets: [wide, perRun] })
    const runId = fixture.freshNames(1)[0] ?? ''
    for (const name of fixture.freshNames(5)) bench.send(eventOf(name, { run: runId }))
    await bench.step('events')
    expect(bench.delivered('triage')).toHaveLength(2)
    expect([await fixture.usedOf(wide), await fixture.usedOf(perRun)]).toEqual([2, 2])
  })

  it('charge an event once per agent', async () => {
    const budget = fixture.ceiling(10)
    const bench = await fixture.newBench({ budgets: [budget], routes: [{ ...toTriage, agents: ['a', 'b', 'c'] }] })
    bench.send(eventOf(fixture.freshNames(1)[0] ?? ''))
    await bench.step('events')
    expect(await fixture.usedOf(budget)).toBe(3)
  })

  it('defer until the window ends where the rule says so, and what comes behind waits too', async () => {
    const budget = fixture.ceiling(1, 'defer')
    const bench = await fixture.newBench({ budgets: [budget] })
    const [a = '', b = '', c = ''] = fixture.freshNames(3)
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
    const budget = fixture.ceiling(5)
    const bench = await fixture.newBench({ budgets: [budget] })
    const zombie = { handler: bench.handler, context: bench.context() }
    bench.send(eventOf(fixture.freshNames(1)[0] ?? ''))
    await bench.takeOver()
    expect(await zombie.handler.claim(bench.batch('events'), zombie.context)).toEqual({ kind: 'fenced' })
    expect(await fixture.rowsOf(bench)).toEqual({ verdicts: [], waiting: [], charges: [] })
    expect(await fixture.usedOf(budget)).toBe(0)
    await bench.step('events')
    expect(bench.delivered('triage')).toHaveLength(1)
  })
})

describe('an agent topic that refuses', () => {
  it('parks its deliveries, voids their charges, and the partition goes on', async () => {
    const budget = fixture.ceiling(10)
    const bench = await fixture.newBench({ budgets: [budget], routes: [{ ...toTriage, agents: ['triage', 'gone'] }] })
    for (const name of fixture.freshNames(3)) bench.send(eventOf(name))
    const batch = bench.batch('events')
    await bench.claim('events')
    const verdict = await bench.handler.reroute(batch, bench.context(), `${topics.agentPrefix}gone`, 'topic_missing')
    if (verdict.kind === 'fenced') throw new Error('fenced')
    expect(verdict.records.some(({ topic }) => topic === `${topics.agentPrefix}gone`)).toBe(false)
    expect(verdict.records.filter(({ topic }) => topic === topics.parked)).toHaveLength(3)
    expect(await fixture.usedOf(budget)).toBe(3)
    await bench.takeOver()
    expect(await bench.step('events')).toEqual(verdict.records)
    expect(bench.delivered('triage')).toHaveLength(3)
    const parked = bench.decisions().filter(row => row.verdict === 'parked')
    expect(parked.map(({ charges, reasons }) => [charges, reasons[0]?.code])).toEqual(
      [0, 1, 2].map(() => [[], 'topic_missing']),
    )
  })

  it('stays parked when Postgres lost that, and is not charged again', async () => {
    const budget = fixture.ceiling(10)
    const bench = await fixture.newBench({ budgets: [budget] })
    for (const name of fixture.freshNames(2)) bench.send(eventOf(name))
    const batch = bench.batch('events')
    await bench.claim('events')
    const before = await fixture.rowsOf(bench)
    const verdict = await bench.handler.reroute(batch, bench.context(), `${topics.agentPrefix}triage`, 'topic_missing')
    if (verdict.kind === 'fenced') throw new Error('fenced')
    await bench.commit('events', batch, verdict.records)
    // As if Postgres were restored to the moment between claim and park.
    await fixture.admin.query('delete from policy.override')
    await fixture.admin.query('update policy.charge set voided_at_ms = null where charge_id = any ($1)', [
      bench.decisions().map(({ decisionId }) => decisionId),
    ])
    await fixture.admin.query(`update policy.budget set used = 2 where budget like $1 || '/%'`, [budget.name])
    expect(await fixture.rowsOf(bench)).toEqual(before)
    await bench.takeOver()
    await bench.handler.rebuild(bench.asOutputs(), bench.ownership)
    expect(await fixture.usedOf(budget)).toBe(0)
    bench.committed.events = 0
    expect(await bench.claim('events')).toEqual(verdict.records)
  })
})
