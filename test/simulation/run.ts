// One run: a scenario from its start until nothing moves any more, or something is violated.
import { checkFinal } from './invariants/final-checks.ts'
import type { Violation } from './monitor.ts'
import type { Alterations } from './context.ts'
import type { Scenario } from './scenario.ts'
import { startMs } from './timeline.ts'
import { SimulatedWorld } from './world.ts'

export interface Outcome {
  readonly violation: Violation | null
  /** Equal for equal runs. */
  readonly hash: string
  readonly steps: number
  /** Requests made: the places where a fault can strike. */
  readonly points: number
  readonly simulatedMs: number
  readonly lines: readonly string[]
}

/** Liveness: this long after the last fault is over, everything has come to its end. */
const patienceMs = 200_000

export async function run(
  scenario: Scenario,
  options: { readonly alter?: Alterations; readonly keepsLines?: boolean } = {},
): Promise<Outcome> {
  const world = new SimulatedWorld(scenario, options)
  world.start()
  const { timeline, monitor } = world
  const isTooLate = (): boolean => timeline.nowMs() > world.healedAtMs + patienceMs
  let isOver = false
  await timeline.run(() => {
    isOver = isQuiet(world)
    return isOver || monitor.violations.length > 0 || isTooLate()
  }, Number.MAX_SAFE_INTEGER)
  if (monitor.violations.length === 0) {
    if (isOver) checkFinal(world)
    else monitor.violate('everything comes to its end', whatIsLeft(world))
  }
  return {
    violation: monitor.violations[0] ?? null,
    hash: world.journal.hash,
    steps: timeline.steps,
    points: world.network.points,
    simulatedMs: timeline.nowMs() - startMs,
    lines: world.journal.lines,
  }
}

function isQuiet(world: SimulatedWorld): boolean {
  if (world.senders.isBusy || world.timeline.nowMs() < world.healedAtMs || world.tables.waiting.size > 0) return false
  if (!world.instances.every(({ isRunning, complaint }) => isRunning && complaint === null)) return false
  return unowned(world) === null && behind(world) === null
}

/** A partition number that nobody works on, or null. */
function unowned({ scenario, instances }: SimulatedWorld): string | null {
  for (const stage of scenario.stages) {
    const owned = new Set(instances.flatMap(each => (each.stage === stage ? each.numbers : [])))
    for (let partition = 0; partition < scenario.partitions; partition++) {
      if (!owned.has(partition)) return `nobody works on ${stage} ${partition}`
    }
  }
  return null
}

/** An input partition with records that are not committed, or null. */
function behind(world: SimulatedWorld): string | null {
  const { scenario, cluster, topics, monitor } = world
  for (const stage of scenario.stages) {
    for (const topic of stage === 'dedup' ? [topics.raw] : [topics.events, topics.released]) {
      for (let partition = 0; partition < scenario.partitions; partition++) {
        const log = cluster.log({ topic, partition })
        // A group offset that was lost meanwhile is none of this: what was committed was committed.
        const logId = cluster.topic(topic)?.logId ?? ''
        const committed = monitor.committedHigh.get(`${stage}/${topic}/${partition}/${logId}`) ?? 0
        if (log.lastRecordOffset >= committed) {
          return `${stage} has ${topic}-${partition} committed up to ${committed}, its last record is ${log.lastRecordOffset}`
        }
      }
    }
  }
  return null
}

function whatIsLeft(world: SimulatedWorld): string {
  const complaints = world.instances.flatMap(({ name, complaint }) =>
    complaint === null ? [] : [`${name}: ${complaint}`],
  )
  const waiting = world.tables.waiting.size
  const left = [
    ...complaints,
    unowned(world),
    behind(world),
    waiting > 0 ? `${waiting} deliveries wait` : null,
    world.senders.isBusy ? 'a sender has no answer' : null,
  ].filter(text => text !== null)
  return left.length === 0 ? 'it is not known what is missing' : left.join('; ')
}
