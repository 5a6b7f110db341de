// What every implementation of the broker port promises. Run on the real broker and on the simulated one.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { membership } from './broker/membership.ts'
import { publishing } from './broker/publishing.ts'
import { reading } from './broker/reading.ts'
import { World, type BrokerHarness } from './broker/world.ts'
import { writing } from './broker/writing.ts'

export type { BrokerHarness, LosablePoint } from './broker/world.ts'

const cases = [...publishing, ...reading, ...writing, ...membership]

/** Registers the suite. `open` is called once; every case has topics and groups of its own. */
export function describeBroker(name: string, open: () => Promise<BrokerHarness> | BrokerHarness): void {
  describe(`broker port: ${name}`, () => {
    let harness: BrokerHarness
    let ran = 0

    beforeAll(async () => {
      harness = await open()
    })
    afterAll(() => harness.close())

    it.each(cases.map(([title, run], i) => ({ title, run, i })))('$title', async ({ run, i }) => {
      expect.hasAssertions()
      const world = new World(harness, `conformance.${process.pid}.${Date.now()}.${i}`)
      try {
        await run(world)
        ran++
      } finally {
        await world.close()
      }
    })

    it(`has run all ${cases.length} cases`, () => {
      expect(ran).toBe(cases.length)
    })
  })
}
