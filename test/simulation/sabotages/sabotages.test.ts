// The simulation earns trust by what it finds: each rule taken away is noticed within the seeds of the short run.
import { describe, expect, it } from 'vitest'
import { run } from '../run.ts'
import { scenarioOf } from '../scenario.ts'
import type { Sabotage } from './sabotage.ts'
import { sabotages } from './table.ts'

const seeds = 1_500

/** The first seed that shows it, and what it violates; null when none does. */
async function find(sabotage: Sabotage): Promise<string | null> {
  for (let seed = 1; seed <= seeds; seed++) {
    const { violation } = await run(scenarioOf(seed, { stages: sabotage.stages }), { alter: sabotage.make() })
    if (violation !== null) return `seed ${seed}: ${violation.invariant}`
  }
  return null
}

describe('a sabotage', () => {
  it('has a name of its own, and there are many', () => {
    const names = sabotages.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
    expect(names.length).toBeGreaterThanOrEqual(20)
  })

  it.each(sabotages.map(sabotage => [sabotage.name, sabotage] as const))(
    'is found: %s',
    async (_, sabotage) => {
      expect(await find(sabotage)).not.toBeNull()
    },
    120_000,
  )
})
