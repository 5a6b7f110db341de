import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase, policyPlaces, type TestDatabase } from '../../../test/support/database.ts'
import { eventOf, PartitionBench } from './adapters/testing/partition-bench.ts'
import { createPolicyFixture, type PolicyFixture } from './adapters/testing/policy-fixture.ts'

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

describe('deliveries that wait', () => {
  /** One passes, the others are deferred by a rate that is as good as closed. */
  async function waitingBench(count: number): Promise<{ bench: PartitionBench; all: string[] }> {
    const bench = await fixture.newBench({ budgets: [fixture.rate(1, 3_600, 1)] })
    const all = fixture.freshNames(count)
    for (const name of all) bench.send(eventOf(name, { object: 'one' }))
    await bench.step('events')
    return { bench, all }
  }

  it('leave in order, and nothing overtakes', async () => {
    const { bench, all } = await waitingBench(5)
    expect(bench.delivered('triage')).toEqual(all.slice(0, 1))
    for (let i = 0; i < 12 && bench.delivered('triage').length < 5; i++) {
      await fixture.makeDue(bench)
      await bench.round()
      if (i === 1) {
        const late = fixture.freshNames(1)[0] ?? ''
        all.push(late)
        bench.send(eventOf(late, { object: 'one' }))
      }
    }
    for (let i = 0; i < 6; i++) {
      await fixture.makeDue(bench)
      await bench.round()
    }
    expect(bench.delivered('triage')).toEqual(all)
    expect(await fixture.waitingCount(bench)).toBe(0)
  })

  it('hold up later events while a claimed release is not known committed', async () => {
    const { bench, all } = await waitingBench(2)
    await fixture.makeDue(bench)
    await bench.tick()
    await bench.claim('released')
    await bench.takeOver()
    // The rate would let it pass: only the waiting row can hold it up.
    await fixture.emptyRedis()
    const later = fixture.freshNames(1)[0] ?? ''
    bench.send(eventOf(later, { object: 'one' }))
    await bench.step('events')
    expect(bench.delivered('triage')).toEqual(all.slice(0, 1))
    await bench.tick()
    expect(bench.logs.released).toHaveLength(1)
    for (let i = 0; i < 6; i++) {
      await bench.round()
      await fixture.makeDue(bench)
    }
    expect(bench.delivered('triage')).toEqual([...all, later])
  })

  it('are cleared by the next owner when the last one ended between commit and deletion', async () => {
    const { bench } = await waitingBench(2)
    await fixture.makeDue(bench)
    await bench.tick()
    const batch = bench.batch('released')
    bench.outputs.push(...(await bench.claim('released')))
    bench.committed.released = batch.records.length
    expect(await fixture.waitingCount(bench)).toBe(1)
    await bench.takeOver()
    expect(await fixture.waitingCount(bench)).toBe(0)
  })

  it('are not released before their own event is known committed', async () => {
    const bench = await fixture.newBench({ budgets: [fixture.rate(1, 3_600, 1)] })
    for (const name of fixture.freshNames(2)) bench.send(eventOf(name, { object: 'one' }))
    await bench.claim('events')
    await fixture.makeDue(bench)
    await bench.tick()
    expect(bench.logs.released).toHaveLength(0)
    await bench.step('events')
    await bench.tick()
    expect(bench.logs.released).toHaveLength(1)
  })

  it('are produced again under the same attempt when a release is not claimed, and count once', async () => {
    const { bench, all } = await waitingBench(2)
    await fixture.makeDue(bench)
    await bench.tick()
    await bench.tick()
    expect(bench.logs.released).toHaveLength(1)
    await fixture.admin.query(
      'update policy.waiting set released_at_ms = released_at_ms - 11000 where partition = $1',
      [bench.ownership.partition],
    )
    await bench.tick()
    expect(bench.logs.released).toHaveLength(2)
    await bench.step('released', 1)
    await bench.step('released', 1)
    expect(bench.delivered('triage')).toEqual(all)
  })

  it('keep agents and ordering keys apart', async () => {
    const bench = await fixture.newBench({ budgets: [fixture.rate(1, 3_600, 2)] })
    const [a = '', b = '', c = ''] = fixture.freshNames(3)
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
    const bench = await fixture.newBench({ budgets: [fixture.rate(10, 1, 4)] })
    for (const name of fixture.freshNames(12)) bench.send(eventOf(name))
    await bench.step('events')
    const slots = bench.decisions().flatMap(({ notBeforeMs }) => (notBeforeMs === null ? [] : [notBeforeMs]))
    expect(bench.delivered('triage')).toHaveLength(4)
    expect(slots).toHaveLength(8)
    for (const [i, slot] of slots.slice(1).entries()) expect(slot - (slots[i] ?? 0)).toBeGreaterThanOrEqual(99)
  })

  it('decide no delivery: with Redis emptied in the middle the same set is delivered', async () => {
    const bench = await fixture.newBench({ budgets: [fixture.rate(5, 3_600, 2)] })
    const all = fixture.freshNames(9)
    for (const [i, name] of all.entries()) bench.send(eventOf(name, { object: `o${i % 3}` }))
    await bench.step('events', 4)
    expect(await fixture.emptyRedis()).toBeGreaterThan(0)
    await bench.step('events')
    for (let i = 0; i < 20 && bench.delivered('triage').length < all.length; i++) {
      await fixture.makeDue(bench)
      await bench.round()
      await fixture.emptyRedis()
    }
    expect(bench.delivered('triage').toSorted()).toEqual(all.toSorted())
    for (const object of [0, 1, 2]) {
      const mine = all.filter((_, i) => i % 3 === object)
      expect(bench.delivered('triage').filter(name => mine.includes(name))).toEqual(mine)
    }
  })

  it('fall back to a local share while Redis is away, and say so', async () => {
    const away = fixture.limiterAt('redis://127.0.0.1:1')
    const bench = new PartitionBench({
      ...fixture.benchOptions({ budgets: [fixture.rate(600, 1, 12)] }),
      limiter: away,
    })
    await bench.takeOver()
    for (const name of fixture.freshNames(5)) bench.send(eventOf(name))
    await bench.step('events')
    await away.close()
    expect(bench.delivered('triage')).toHaveLength(2)
    expect(bench.decisions().every(({ reasons }) => reasons.some(({ code }) => code === 'degraded'))).toBe(true)
  })
})

describe('a rebuild', () => {
  it('restores exactly what Postgres lost, once', async () => {
    const budget = fixture.ceiling(4)
    const bench = await fixture.newBench({ budgets: [budget, fixture.rate(1, 3_600, 5)] })
    for (const [i, name] of fixture.freshNames(9).entries()) bench.send(eventOf(name, { object: `o${i % 2}` }))
    await bench.step('events')
    await fixture.makeDue(bench)
    await bench.round()
    const all = await bench.handler.rebuild(bench.asOutputs(), bench.ownership)
    expect(all.restored).toBe(0)
    const before = await fixture.rowsOf(bench)
    const used = await fixture.usedOf(budget)
    const { partition } = bench.ownership
    await fixture.admin.query('delete from policy.waiting where partition = $1', [partition])
    await fixture.admin.query(
      'update policy.budget b set used = used - s.n from (select budget, count(*) as n from policy.charge c join policy.verdict v ' +
        'on v.decision_id = c.charge_id where v.partition = $1 and v."offset" > 1 group by 1) s where s.budget = b.budget',
      [partition],
    )
    await fixture.admin.query(
      'delete from policy.charge c using policy.verdict v where v.decision_id = c.charge_id and v.partition = $1 and v."offset" > 1',
      [partition],
    )
    await fixture.admin.query('delete from policy.verdict where partition = $1 and "offset" > 1', [partition])
    await bench.takeOver()
    expect((await bench.handler.rebuild(bench.asOutputs(), bench.ownership)).restored).toBeGreaterThan(0)
    expect(await fixture.usedOf(budget)).toBe(used)
    // Due times were moved by the test itself; all else is as it was.
    await fixture.makeDue(bench)
    expect(await fixture.rowsOf(bench)).toEqual(before)
    expect((await bench.handler.rebuild(bench.asOutputs(), bench.ownership)).restored).toBe(0)
  })
})
