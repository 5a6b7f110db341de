// Many seeds, one after another: `node test/simulation/seeds.ts STAGES FROM TO`, with STAGES `dedup` or `dedup,policy`. The last line is
// one JSON object; a violated seed is named with its story, and the exit code is 1.
import { run } from './run.ts'
import { scenarioOf, type StageName } from './scenario.ts'

const [stagesText = 'dedup,policy', fromText = '1', toText = '1000'] = process.argv.slice(2)
const stages = stagesText.split(',') as StageName[]
const [from, to] = [Number(fromText), Number(toText)]
const startedAt = process.hrtime.bigint()
const violated: { readonly seed: number; readonly invariant: string; readonly detail: string }[] = []
let faults = 0
let deliveries = 0
let requests = 0
for (let seed = from; seed <= to; seed++) {
  const scenario = scenarioOf(seed, { stages })
  const { violation, points } = await run(scenario)
  requests += points
  faults += scenario.faults.filter(({ at }) => at <= points).length
  deliveries += scenario.deliveries.length
  if (violation !== null) {
    violated.push({ seed, ...violation })
    const { lines } = await run(scenario, { keepsLines: true })
    process.stderr.write(`seed ${seed}: ${violation.invariant}: ${violation.detail}\n${lines.join('\n')}\n`)
  }
  if ((seed - from + 1) % 5_000 === 0) process.stderr.write(`${seed - from + 1} of ${to - from + 1} seeds\n`)
}
const seconds = Number((process.hrtime.bigint() - startedAt) / 1_000_000n) / 1_000
process.stdout.write(
  `${JSON.stringify({ simulation: stagesText, from, to, seeds: to - from + 1, faults, deliveries, requests, violated, seconds, pass: violated.length === 0 })}\n`,
)
process.exitCode = violated.length === 0 ? 0 : 1
