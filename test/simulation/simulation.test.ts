// A quick look in every check; the run that earns trust is simulation.int.test.ts.
import { describe, expect, it } from 'vitest'
import { run } from './run.ts'
import { scenarioOf, type StageName } from './scenario.ts'

const worlds: readonly (readonly [string, readonly StageName[]])[] = [
  ['dedup', ['dedup']],
  ['dedup and policy', ['dedup', 'policy']],
]

describe.each(worlds)('the simulation of %s', (_, stages) => {
  it('gives the same trace for the same seed, and another for another', async () => {
    const hashes = new Set<string>()
    for (let seed = 1; seed <= 20; seed++) {
      const scenario = scenarioOf(seed, { stages })
      const [first, second] = [await run(scenario), await run(scenario, { keepsLines: true })]
      expect([seed, second.hash, second.steps]).toEqual([seed, first.hash, first.steps])
      hashes.add(first.hash)
    }
    expect(hashes.size).toBe(20)
  })

  it('finds nothing in the first seeds', async () => {
    for (let seed = 1; seed <= 150; seed++) {
      const { violation } = await run(scenarioOf(seed, { stages }))
      expect({ seed, violation }).toEqual({ seed, violation: null })
    }
  })
})
