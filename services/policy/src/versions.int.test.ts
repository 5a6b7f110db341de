import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase, policyPlaces, type TestDatabase } from '../../../test/support/database.ts'
import { eventOf } from './adapters/testing/partition-bench.ts'
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

describe('versions', () => {
  const versioned = (name: string, version: string | null, object = 'order') => eventOf(name, { version, object })

  it('let newer and equal ones through, and record an older one as stale', async () => {
    const bench = await fixture.newBench({ routes: [{ ...toTriage, agents: ['triage', 'watch'] }] })
    const names = fixture.freshNames(6)
    const object = names[0] ?? ''
    const given = ['2', '10', '9', '10', null, '10.5']
    for (const [i, version] of given.entries()) bench.send(versioned(names[i] ?? '', version, object))
    await bench.step('events')
    expect(bench.delivered('triage')).toEqual([0, 1, 3, 4, 5].map(i => names[i]))
    const stale = bench.decisions().filter(({ verdict }) => verdict === 'stale')
    expect(stale.map(({ agent, reasons }) => [agent, reasons[0]?.gate, reasons[0]?.code])).toEqual([
      ['triage', 'version', 'older'],
      ['watch', 'version', 'older'],
    ])
  })

  it('are times too, to the last digit, in any zone', async () => {
    const bench = await fixture.newBench()
    const names = fixture.freshNames(4)
    const object = names[0] ?? ''
    const given = [
      '2026-01-01T00:00:00.000000002Z',
      '2026-01-01T00:00:00.000000001Z',
      '2026-01-01T01:00:00.000000003+01:00',
      'not a version',
    ]
    for (const [i, version] of given.entries()) bench.send(versioned(names[i] ?? '', version, object))
    await bench.step('events')
    expect(bench.delivered('triage')).toEqual([0, 2, 3].map(i => names[i]))
    expect(bench.decisions().at(-1)?.reasons[0]?.code).toBe('not_comparable')
  })

  it('hold across a restart, and are not asked of another agent or object', async () => {
    const bench = await fixture.newBench()
    const names = fixture.freshNames(3)
    const object = names[0] ?? ''
    bench.send(versioned(names[0] ?? '', '5', object))
    await bench.step('events')
    await bench.takeOver()
    bench.send(versioned(names[1] ?? '', '4', object))
    bench.send(versioned(names[2] ?? '', '4', `${object}-other`))
    await bench.step('events')
    expect(bench.delivered('triage')).toEqual([names[0], names[2]])
  })

  it('are moved only by what was let through: a denied one makes nothing stale', async () => {
    const budget = fixture.ceiling(1, 'deny', 'run')
    const bench = await fixture.newBench({ budgets: [budget] })
    const names = fixture.freshNames(3)
    const [object = '', run = ''] = names
    bench.send(eventOf(names[0] ?? '', { run, object: `${object}-first` }))
    bench.send(eventOf(names[1] ?? '', { run, version: '9', object }))
    bench.send(eventOf(names[2] ?? '', { version: '3', object }))
    await bench.step('events')
    expect(bench.delivered('triage')).toEqual([names[0], names[2]])
  })
})
