import { createHash } from 'node:crypto'
import type { Decision } from '@weir/schemas'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase, policyPlaces, type TestDatabase } from '../../../test/support/database.ts'
import { startApi } from './adapters/http-api.ts'
import type { PostgresDeliveryLedger } from './adapters/postgres-delivery-ledger.ts'
import { deliveryIdOf, eventOf, topics, type PartitionBench } from './adapters/testing/partition-bench.ts'
import { createPolicyFixture, type PolicyFixture } from './adapters/testing/policy-fixture.ts'
import { outcomeRecord } from './domain/outcome-record.ts'
import { ReportIntake } from './service/report-intake.ts'

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

function verdicts(bench: PartitionBench): string[] {
  return bench.decisions().map(({ verdict, attempt, reasons }: Decision) => {
    return [`${attempt}:${verdict}`, reasons[0]?.code].filter(Boolean).join(' ')
  })
}

async function delivered(name: string): Promise<PartitionBench> {
  const bench = await fixture.newBench(reporting)
  bench.send(eventOf(name))
  await bench.step('events')
  return bench
}

function attemptsSeen(bench: PartitionBench): string[] {
  return bench.outputs
    .filter(({ topic }) => topic === `${topics.agentPrefix}triage`)
    .map(({ headers }) => {
      const of = (wanted: string): string => headers.find(([name]) => name === wanted)?.[1].toString() ?? ''
      return `${of('ce_decisionid')}:${of('ce_attempt')}`
    })
}

describe('a delivery to an agent that reports', () => {
  it('is completed by its report, and its bytes are forgotten', async () => {
    const [name = ''] = fixture.freshNames(1)
    const bench = await delivered(name)
    expect(await fixture.stateOf(name)).toMatchObject({ state: 'in_progress', deliveries: 1, forgotten: false })
    bench.says(name)
    await bench.step('outcomes')
    expect(await fixture.stateOf(name)).toMatchObject({ state: 'completed', forgotten: true })
    expect(verdicts(bench)).toEqual(['0:allow', '0:completed completed'])
  })

  it('comes again after a failure without effects, under the same decision, until the cap; then it is parked', async () => {
    const [name = ''] = fixture.freshNames(1)
    const bench = await delivered(name)
    for (const attempt of [0, 1, 2]) {
      bench.says(name, { attempt, ...failedWithout })
      await bench.step('outcomes')
      await fixture.makeDue(bench)
      await bench.round()
    }
    const id = deliveryIdOf(name)
    expect(attemptsSeen(bench)).toEqual([`${id}:0`, `${id}:1`, `${id}:2`])
    expect(verdicts(bench)).toEqual([
      '0:allow',
      '0:defer again',
      '1:allow',
      '1:defer again',
      '2:allow',
      '2:parked attempts_exhausted',
    ])
    const parked = bench.outputs.filter(({ topic }) => topic === topics.parked)
    expect(
      parked.map(({ headers }) => Object.fromEntries(headers.map(([key, value]) => [key, value.toString()]))),
    ).toEqual([
      expect.objectContaining({
        'weir-parked-reason': 'attempts_exhausted',
        'weir-parked-agent': 'triage',
        'weir-parked-decision-id': id,
        'weir-parked-topic': topics.events,
      }),
    ])
    expect(parked[0]?.value).toEqual(bench.logs.events[0]?.value)
  })

  it('waits its back-off, and later events of its key wait behind it', async () => {
    const [first = '', second = ''] = fixture.freshNames(2)
    const bench = await fixture.newBench(reporting)
    bench.send(eventOf(first, { object: first }))
    await bench.step('events')
    bench.says(first, failedWithout)
    await bench.step('outcomes')
    bench.send(eventOf(second, { object: first }))
    await bench.round()
    expect(bench.delivered('triage')).toEqual([first])
    const [again] = bench.decisions().filter(({ report }) => report !== null)
    expect((again?.notBeforeMs ?? 0) - (again?.atMs ?? 0)).toBe(10_000)
    await fixture.makeDue(bench)
    await bench.round()
    await bench.round()
    expect(bench.delivered('triage')).toEqual([first, first, second])
  })

  it('is not charged again', async () => {
    const budget = fixture.ceiling(1)
    const bench = await fixture.newBench({ ...reporting, budgets: [budget] })
    const [name = ''] = fixture.freshNames(1)
    bench.send(eventOf(name))
    await bench.step('events')
    bench.says(name, failedWithout)
    await bench.step('outcomes')
    await fixture.makeDue(bench)
    await bench.round()
    expect(bench.delivered('triage')).toEqual([name, name])
    expect(await fixture.usedOf(budget)).toBe(1)
  })

  it('is parked at once when effects are unknown or done', async () => {
    for (const effects of ['unknown', 'done'] as const) {
      const [name = ''] = fixture.freshNames(1)
      const bench = await delivered(name)
      bench.says(name, { status: 'failed', effects })
      await bench.step('outcomes')
      expect(await fixture.stateOf(name)).toMatchObject({ state: 'parked', parked_code: `effects_${effects}` })
      expect(bench.delivered('triage')).toEqual([name])
    }
  })

  it('is parked when no report comes in time; produced twice, it counts once', async () => {
    const [name = ''] = fixture.freshNames(1)
    const bench = await delivered(name)
    await bench.tick()
    expect(bench.logs.outcomes).toHaveLength(0)
    await fixture.admin.query('update policy.delivery set overdue_at_ms = 1 where decision_id = $1', [
      deliveryIdOf(name),
    ])
    await bench.tick()
    await bench.takeOver()
    await fixture.admin.query('update policy.delivery set overdue_produced_at_ms = 1 where decision_id = $1', [
      deliveryIdOf(name),
    ])
    await bench.tick()
    expect(bench.logs.outcomes).toHaveLength(2)
    await bench.step('outcomes')
    expect(await fixture.stateOf(name)).toMatchObject({ state: 'parked', parked_code: 'no_report' })
    expect(bench.outputs.filter(({ topic }) => topic === topics.parked)).toHaveLength(1)
  })

  it('that was parked for want of a report is completed by a late one', async () => {
    const [name = ''] = fixture.freshNames(1)
    const bench = await delivered(name)
    await fixture.admin.query('update policy.delivery set overdue_at_ms = 1 where decision_id = $1', [
      deliveryIdOf(name),
    ])
    await bench.tick()
    await bench.step('outcomes')
    bench.says(name)
    await bench.step('outcomes')
    expect(await fixture.stateOf(name)).toMatchObject({ state: 'completed' })
  })

  it('keeps its first report, and tells of a contradiction', async () => {
    const [name = ''] = fixture.freshNames(1)
    const bench = await delivered(name)
    bench.says(name)
    bench.says(name)
    bench.says(name, failedWithout)
    await bench.step('outcomes')
    expect(verdicts(bench)).toEqual(['0:allow', '0:completed completed', '0:ignored contradictory'])
    expect(await fixture.stateOf(name)).toMatchObject({ state: 'completed' })
  })

  it('is not moved by another agent, by an attempt that was not made, or by nonsense', async () => {
    const [name = ''] = fixture.freshNames(1)
    const bench = await delivered(name)
    bench.says(name, { agent: 'billing' })
    bench.says(name, { attempt: 7 })
    bench.logs.outcomes.push({
      ...bench.report(
        outcomeRecord(
          { decisionId: 'x', attempt: 0, agent: 'triage', status: 'completed', effects: '', detail: null, atMs: 1 },
          eventOf(name),
        ),
      ),
      offset: 3,
      value: Buffer.from('no'),
    })
    await bench.step('outcomes')
    expect(bench.outputs.filter(({ topic }) => topic === topics.parked)).toHaveLength(4)
    expect(await fixture.stateOf(name)).toMatchObject({ state: 'in_progress' })
  })

  it('gives the same answers when its reports are read again, in other batches, by another owner', async () => {
    const names = fixture.freshNames(3)
    const bench = await fixture.newBench(reporting)
    for (const name of names) bench.send(eventOf(name))
    await bench.step('events')
    bench.says(names[0] ?? '')
    bench.says(names[1] ?? '', failedWithout)
    bench.says(names[0] ?? '', failedWithout)
    bench.says(names[2] ?? '', { status: 'failed', effects: 'done' })
    const first = await bench.claim('outcomes')
    await bench.takeOver()
    const before = bench.outputs.length
    for (const limit of [1, 2, 1]) await bench.step('outcomes', limit)
    expect(bench.outputs.slice(before)).toEqual(first)
  })

  it('comes again also when the owner dies between the claim of the report and its commit', async () => {
    const [name = ''] = fixture.freshNames(1)
    const bench = await delivered(name)
    bench.says(name, failedWithout)
    await bench.claim('outcomes')
    await bench.takeOver()
    // The take-over finds the delivery among its own outputs; the waiting row of the claimed report must survive that.
    await bench.handler.rebuild(bench.asOutputs(), bench.ownership)
    await bench.step('outcomes')
    await fixture.makeDue(bench)
    await bench.round()
    expect(bench.delivered('triage')).toEqual([name, name])
  })

  it('is stale when a newer version went out while it waited for a further attempt', async () => {
    const bench = await fixture.newBench(reporting)
    const [old = '', fresh = ''] = fixture.freshNames(2)
    bench.send(eventOf(old, { version: '1', object: old }))
    bench.send(eventOf(fresh, { version: '2', object: old }))
    await bench.step('events')
    bench.says(old, failedWithout)
    await bench.step('outcomes')
    await fixture.makeDue(bench)
    await bench.round()
    expect(bench.delivered('triage')).toEqual([old, fresh])
    expect(await fixture.stateOf(old)).toMatchObject({ state: 'stale', forgotten: true })
  })

  it('is rebuilt from decisions when Postgres lost it', async () => {
    const [done = '', waiting = '', open = ''] = fixture.freshNames(3)
    const bench = await fixture.newBench(reporting)
    for (const name of [done, waiting, open]) bench.send(eventOf(name, { version: '7' }))
    await bench.step('events')
    bench.says(done)
    bench.says(waiting, failedWithout)
    await bench.step('outcomes')
    const tables = ['outcome', 'delivery', 'waiting', 'version']
    const rows = async (): Promise<object[][]> =>
      await Promise.all(
        tables.map(async table => {
          const rows = await fixture.admin.query<Record<string, unknown>>(
            `select * from policy.${table} where decision_id = any ($1) order by decision_id`,
            [[done, waiting, open].map(deliveryIdOf)],
          )
          // Of one that has ended the bytes are not needed.
          return rows.map(row => ({ ...row, event: row['state'] === 'completed' ? null : row['event'] }))
        }),
      )
    const before = await rows()
    for (const table of tables) {
      await fixture.admin.query(`delete from policy.${table} where decision_id = any ($1)`, [
        [done, waiting, open].map(deliveryIdOf),
      ])
    }
    await bench.takeOver()
    expect(await bench.handler.rebuild(bench.asOutputs(), bench.ownership)).toEqual({ restored: 3 + 2 + 1 + 3 })
    expect(await rows()).toEqual(before)
    expect(await bench.handler.rebuild(bench.asOutputs(), bench.ownership)).toEqual({ restored: 0 })
    await fixture.makeDue(bench)
    await bench.round()
    expect(bench.delivered('triage')).toEqual([done, waiting, open, waiting])
  })
})

type Call = (path: string, init: RequestInit) => Promise<Response>

describe('the agents’ API', () => {
  const key = 'wk_of-the-triage-agent'
  const keySha256 = createHash('sha256').update(key).digest('hex')
  const agent = { name: 'triage', tenant: 'acme', outcomes: 'required', keySha256 } as const
  const other = { ...agent, name: 'watch', keySha256: createHash('sha256').update('wk_other').digest('hex') }

  async function withApi(bench: PartitionBench, use: (call: Call) => Promise<void>): Promise<void> {
    const { deliveries: directory, codec, clock, log } = fixture.benchOptions()
    const intake = new ReportIntake({
      directory: directory as PostgresDeliveryLedger,
      topics,
      publisher: bench.publisher,
      codec,
      clock,
    })
    const api = await startApi({ host: '127.0.0.1', port: 0, agents: [agent, other], intake, log })
    try {
      await use((path, init) => fetch(`http://127.0.0.1:${api.port}${path}`, init))
    } finally {
      await api.close()
    }
  }

  const post = (body: unknown, bearer = key): RequestInit => ({
    method: 'POST',
    headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

  it('takes a report into weir.outcomes, and shows what became of the delivery', async () => {
    const [name = ''] = fixture.freshNames(1)
    const bench = await delivered(name)
    await withApi(bench, async call => {
      const answer = await call(
        '/v1/outcomes',
        post({ decision_id: deliveryIdOf(name), attempt: 0, status: 'completed' }),
      )
      expect([answer.status, await answer.json()]).toEqual([
        202,
        { decision_id: deliveryIdOf(name), attempt: 0, status: 202, state: 'in_progress' },
      ])
      await bench.step('outcomes')
      const shown = await call(`/v1/deliveries/${deliveryIdOf(name)}`, { headers: { authorization: `Bearer ${key}` } })
      expect(await shown.json()).toMatchObject({ state: 'completed', deliveries: 1, max_attempts: 3, report_by: null })
    })
    expect(bench.decisions().at(-1)).toMatchObject({ verdict: 'completed', type: 'issues.opened', subject: name })
  })

  it('answers each of several reports for itself', async () => {
    const [name = '', unknown = ''] = fixture.freshNames(2)
    const bench = await delivered(name)
    const said = (of: string) => ({ decision_id: deliveryIdOf(of), attempt: 0, status: 'failed', effects: 'none' })
    await withApi(bench, async call => {
      const answer = await call('/v1/outcomes', post({ outcomes: [said(name), said(unknown)] }))
      const { outcomes } = (await answer.json()) as { outcomes: { status: number }[] }
      expect([answer.status, outcomes.map(({ status }) => status)]).toEqual([200, [202, 404]])
    })
    expect(bench.logs.outcomes).toHaveLength(1)
  })

  it('refuses what is not an agent’s own, and says why', async () => {
    const [name = ''] = fixture.freshNames(1)
    const bench = await delivered(name)
    const mine = { decision_id: deliveryIdOf(name), attempt: 0 }
    const problemOf = async (call: Call, body: unknown, bearer = key): Promise<[number, string]> => {
      const answer = await call('/v1/outcomes', post(body, bearer))
      return [answer.status, ((await answer.json()) as { detail: string }).detail]
    }
    await withApi(bench, async call => {
      expect((await problemOf(call, { ...mine, status: 'completed' }, 'wk_wrong'))[0]).toBe(401)
      expect((await problemOf(call, { ...mine, status: 'completed' }, 'wk_other'))[0]).toBe(404)
      expect((await problemOf(call, { ...mine, attempt: 1, status: 'completed' }))[0]).toBe(404)
      expect(await problemOf(call, { ...mine, status: 'failed' })).toEqual([
        400,
        expect.stringContaining('effects is missing'),
      ])
      expect(await problemOf(call, { ...mine, status: 'done' })).toEqual([400, expect.stringContaining('status')])
      expect((await call('/v1/outcomes', { ...post({}), body: '{' })).status).toBe(400)
    })
    expect(bench.logs.outcomes).toHaveLength(0)
  })
})
