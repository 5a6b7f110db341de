import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase, policyPlaces, type TestDatabase } from '../../../test/support/database.ts'
import { deliveryIdOf, eventOf, topics, type PartitionBench } from './adapters/testing/partition-bench.ts'
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

const reporting = { reporting: ['triage'] }
const failedWithout = { status: 'failed', effects: 'none' } as const
const dayMs = 86_400_000

async function expire({ ownership }: PartitionBench, beforeMs: number, limit = 100): Promise<number | null> {
  return await fixture.benchOptions().deliveries.expire(ownership, { beforeMs, limit })
}

async function decisionsLeft(bench: PartitionBench): Promise<string[]> {
  const { verdicts } = await fixture.rowsOf(bench)
  return verdicts.map(row => (row as { decision_id: string }).decision_id)
}

/** As if it had been judged then. */
async function judgedAt(name: string, atMs: number): Promise<void> {
  await fixture.admin.query('update policy.verdict set at_ms = $2 where decision_id = $1', [deliveryIdOf(name), atMs])
}

describe('old rows', () => {
  it('go when nothing can ask for them, and open deliveries keep theirs', async () => {
    const bench = await fixture.newBench({ ...reporting, routes: [{ ...toTriage, agents: ['triage', 'watch'] }] })
    const [open = '', done = ''] = fixture.freshNames(2)
    bench.send(eventOf(open))
    bench.send(eventOf(done))
    await bench.step('events')
    bench.says(done)
    await bench.step('outcomes')
    await bench.takeOver()
    const { ownership } = bench
    const { deliveries } = fixture.benchOptions()
    expect(
      await deliveries.expire({ ...ownership, epoch: ownership.epoch - 1n }, { beforeMs: 9e15, limit: 100 }),
    ).toBeNull()
    expect(await expire(bench, 0)).toBe(0)
    expect(await expire(bench, 9e15)).toBeGreaterThanOrEqual(3)
    expect(await decisionsLeft(bench)).toEqual([deliveryIdOf(open)])
    expect(await fixture.stateOf(done)).toBeUndefined()
  })

  it('go also when more than the limit of open ones stand before them', async () => {
    const bench = await fixture.newBench(reporting)
    const names = fixture.freshNames(4)
    for (const name of names) bench.send(eventOf(name))
    await bench.step('events')
    bench.says(names[3] ?? '')
    await bench.step('outcomes')
    await bench.takeOver()
    expect(await expire(bench, 9e15, 1)).toBe(1)
    expect(await fixture.stateOf(names[3] ?? '')).toBeUndefined()
  })

  it('stay while a younger verdict of the same delivery does', async () => {
    const budget = fixture.ceiling(1, 'defer')
    const bench = await fixture.newBench({ ...reporting, budgets: [budget] })
    const [first = '', second = ''] = fixture.freshNames(2)
    bench.send(eventOf(first))
    bench.send(eventOf(second))
    await bench.step('events')
    await fixture.admin.query(`update policy.budget set used = 0 where budget like $1 || '/%'`, [budget.name])
    await fixture.makeDue(bench)
    await bench.round()
    expect(bench.delivered('triage')).toEqual([first, second])
    for (const name of [first, second]) bench.says(name, { attempt: name === first ? 0 : 1 })
    await bench.step('outcomes')
    await bench.takeOver()
    await fixture.admin.query('update policy.verdict set at_ms = 1 where decision_id = $1 and attempt = 0', [
      deliveryIdOf(second),
    ])
    await expire(bench, 2)
    expect(await fixture.stateOf(second)).toMatchObject({ state: 'completed' })
  })

  it('do not take the budget of a window that is still open with them', async () => {
    const budget = fixture.ceiling(1, 'defer')
    const bench = await fixture.newBench({ budgets: [budget] })
    const [name = ''] = fixture.freshNames(1)
    bench.send(eventOf(name))
    await bench.step('events')
    await bench.takeOver()
    const [row] = await fixture.admin.query<{ start: number }>(
      `select window_start_ms as start from policy.budget where budget like $1 || '/%'`,
      [budget.name],
    )
    const start = row?.start ?? 0
    await expire(bench, start + 30 * dayMs)
    expect(await fixture.usedOf(budget)).toBe(1)
    await expire(bench, start + 32 * dayMs)
    expect(await fixture.usedOf(budget)).toBe(0)
  })

  it('of versions go in their own partition only: another may lag', async () => {
    const [here, there] = [await fixture.newBench(), await fixture.newBench()]
    const names = fixture.freshNames(4)
    const [a = '', b = '', olderA = '', olderB = ''] = names
    here.send(eventOf(a, { version: '5', object: a }))
    there.send(eventOf(b, { version: '5', object: b }))
    await here.step('events')
    await there.step('events')
    await here.takeOver()
    await judgedAt(a, 1)
    await expire(here, 9e15)
    here.send(eventOf(olderA, { version: '4', object: a }))
    there.send(eventOf(olderB, { version: '4', object: b }))
    await here.step('events')
    await there.step('events')
    expect([here.delivered('triage'), there.delivered('triage')]).toEqual([[a, olderA], [b]])
  })
})

/** What is left when Postgres comes back without the last commits, and the partition is taken over. */
async function lose(bench: PartitionBench, names: readonly string[], tables: readonly string[]): Promise<void> {
  const ids = names.map(deliveryIdOf)
  for (const table of tables)
    await fixture.admin.query(`delete from policy.${table} where decision_id = any ($1)`, [ids])
  await bench.takeOver()
  await bench.handler.rebuild(bench.asOutputs(), bench.ownership)
}

describe('what Postgres lost', () => {
  it('is made again: the late completion of a delivery that was parked', async () => {
    const [name = ''] = fixture.freshNames(1)
    const bench = await fixture.newBench(reporting)
    bench.send(eventOf(name))
    await bench.step('events')
    await fixture.admin.query('update policy.delivery set overdue_at_ms = 1 where decision_id = $1', [
      deliveryIdOf(name),
    ])
    await bench.tick()
    await bench.step('outcomes')
    bench.says(name)
    await bench.step('outcomes')
    // Only the last commit is lost.
    await fixture.admin.query(
      `update policy.delivery set state = 'parked', parked_code = 'no_report' where decision_id = $1`,
      [deliveryIdOf(name)],
    )
    await lose(bench, [], [])
    expect(await fixture.stateOf(name)).toMatchObject({ state: 'completed' })
  })

  it('is made again: a delivery that its agent’s topic refused', async () => {
    const [name = ''] = fixture.freshNames(1)
    const bench = await fixture.newBench(reporting)
    bench.send(eventOf(name))
    const batch = bench.batch('events')
    await bench.claim('events')
    const verdict = await bench.handler.reroute(batch, bench.context(), `${topics.agentPrefix}triage`, 'topic_missing')
    if (verdict.kind === 'fenced') throw new Error('fenced')
    await bench.commit('events', batch, verdict.records)
    const parked = { state: 'parked', parked_code: 'topic_missing', forgotten: true }
    expect(await fixture.stateOf(name)).toMatchObject(parked)
    await lose(bench, [name], ['delivery'])
    expect(await fixture.stateOf(name)).toMatchObject(parked)
  })

  it('is made again: a further attempt that a newer version stopped, told only by its last decision', async () => {
    const bench = await fixture.newBench(reporting)
    const [old = '', fresh = ''] = fixture.freshNames(2)
    bench.send(eventOf(old, { version: '1', object: old }))
    bench.send(eventOf(fresh, { version: '2', object: old }))
    await bench.step('events')
    bench.says(old, failedWithout)
    await bench.step('outcomes')
    const known = bench.outputs.length
    await fixture.makeDue(bench)
    await bench.round()
    // Postgres comes back as it was before the further attempt, and only what came after it is read.
    await fixture.admin.query(
      `update policy.delivery set state = 'waiting', ended_log_id = null, ended_offset = null where decision_id = $1`,
      [deliveryIdOf(old)],
    )
    await fixture.admin.query('delete from policy.verdict where decision_id = $1 and attempt = 1', [deliveryIdOf(old)])
    await bench.takeOver()
    await bench.handler.rebuild(bench.asOutputs().slice(known), bench.ownership)
    expect(await fixture.stateOf(old)).toMatchObject({ state: 'stale' })
  })
})

describe('a delivery that is open when its agent need not report any more', () => {
  it('goes on as it began', async () => {
    const [name = ''] = fixture.freshNames(1)
    const bench = await fixture.newBench(reporting)
    bench.send(eventOf(name))
    await bench.step('events')
    bench.says(name, failedWithout)
    await bench.step('outcomes')
    await bench.takeOver({ reportingAgents: new Set() })
    await fixture.makeDue(bench)
    await bench.round()
    expect(bench.delivered('triage')).toEqual([name, name])
    expect(await fixture.stateOf(name)).toMatchObject({ state: 'in_progress', attempt: 1, deliveries: 2 })
  })
})
