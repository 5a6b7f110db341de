// What a run is made of: plain data, drawn from a seed, made smaller by the shrinker.
import { partitionOf } from '@weir/core'
import { Random } from './random.ts'

/** One delivery to weir.raw. Equal `event` numbers are copies of one event. */
export interface Delivery {
  readonly event: number
  readonly object: number
  readonly sender: number
  /** Pause of its sender before it, milliseconds. */
  readonly pauseMs: number
  /** Other bytes under the same key. */
  readonly changed: boolean
  /** Equal numbers of different events name one business key. */
  readonly business: number | null
  /** `unreadable`: bytes that nobody can decode; `misplaced`: in the partition another hash gave it. */
  readonly kind: 'good' | 'unreadable' | 'misplaced'
}

/** Faults of one request: what happens to the n-th request of the run. */
export const requestFaults = [
  'lose-request',
  'lose-answer',
  'delay-request',
  'delay-answer',
  'kill-before',
  'kill-after',
  'freeze-before',
  'freeze-after',
] as const
/** Faults that happen when the n-th request is made, whosever it is. */
export const worldFaults = [
  'kill',
  'freeze',
  'stop',
  'evict',
  'join',
  'offsets-lost',
  'offsets-back',
  'postgres-restored',
  'postgres-down',
  'kafka-down',
  'caches-emptied',
  'redis-emptied',
  'redis-down',
  'clock-jump',
  'copy',
  'partial-append',
] as const

export type FaultKind = (typeof requestFaults)[number] | (typeof worldFaults)[number]

export interface Fault {
  /** Number of the request it happens at, from 1. */
  readonly at: number
  readonly kind: FaultKind
  /** Which instance, partition or delivery; taken modulo how many there are. */
  readonly which: number
  readonly ms: number
}

export type StageName = 'dedup' | 'policy'

export interface Scenario {
  readonly seed: number
  readonly stages: readonly StageName[]
  readonly instances: number
  readonly partitions: number
  readonly cacheEntries: number
  readonly maxBatchRecords: number
  /** Budgets that policy applies, by name of a set. */
  readonly budgets: 'none' | 'rate' | 'ceiling' | 'both' | 'deny'
  readonly agents: number
  readonly deliveries: readonly Delivery[]
  readonly faults: readonly Fault[]
  /** Largest extra time of a request or an answer, milliseconds; 0: all take the same. */
  readonly jitterMs: number
}

export interface ScenarioOptions {
  readonly stages: readonly StageName[]
}

const budgetSets = ['none', 'rate', 'ceiling', 'both', 'deny'] as const

/** Draws a scenario: few things of each kind, and few kinds at a time, so that each gets its turn. */
export function scenarioOf(seed: number, { stages }: ScenarioOptions): Scenario {
  const random = new Random(seed)
  const partitions = random.between(1, 2)
  const deliveries = drawDeliveries(random)
  const requests = 30 + deliveries.length * (stages.length > 1 ? 30 : 14)
  return {
    seed,
    stages,
    instances: random.between(1, 2),
    partitions,
    cacheEntries: random.chance(0.5) ? 0 : 16,
    maxBatchRecords: random.pick([1, 2, 100]),
    budgets: stages.includes('policy') ? random.pick(budgetSets) : 'none',
    agents: stages.includes('policy') ? random.between(1, 2) : 1,
    deliveries,
    faults: drawFaults(random, requests, stages),
    jitterMs: random.pick([0, 2, 10, 60]),
  }
}

function drawDeliveries(random: Random): Delivery[] {
  const drawn = drawEach(random)
  return drawn.map(delivery => ({
    ...delivery,
    // What an event is about, and its business key, are the event's and not the copy's.
    object: drawn[delivery.event]?.object ?? 0,
    business: drawn[delivery.event]?.business ?? null,
  }))
}

function drawEach(random: Random): Delivery[] {
  const events = random.between(1, 4)
  const count = random.between(events, events + 3)
  const hasBusiness = random.chance(0.2)
  return Array.from({ length: count }, (_, i) => {
    const event = i < events ? i : random.between(0, events - 1)
    const kind: Delivery['kind'] = random.chance(0.04) ? 'unreadable' : random.chance(0.06) ? 'misplaced' : 'good'
    return {
      event,
      object: event % 2 === 0 ? 0 : random.between(0, 1),
      sender: random.between(0, 1),
      pauseMs: random.pick([0, 0, 5, 50, 400]),
      changed: random.chance(0.05),
      business: hasBusiness && random.chance(0.6) ? random.between(0, 1) : null,
      kind,
    }
  })
}

function drawFaults(random: Random, requests: number, stages: readonly StageName[]): Fault[] {
  const all = [...requestFaults, ...requestFaults, ...worldFaults].filter(
    kind => stages.includes('policy') || !kind.startsWith('redis'),
  )
  const kinds = Array.from({ length: random.between(1, 4) }, () => random.pick(all))
  const count = random.pick([0, 1, 1, 2, 2, 3, 4, 6])
  return Array.from({ length: count }, () => ({
    at: random.between(1, requests),
    kind: random.pick(kinds),
    which: random.between(0, 3),
    ms: random.pick([20, 200, 700, 1_500, 4_000]),
  })).sort((a, b) => a.at - b.at)
}

/** Names of objects whose ordering keys fall into partition 0, 1, 0, … of two. */
export function objectName(object: number): string {
  let left = object >> 1
  for (let i = 0; ; i++) {
    const name = `object-${i}`
    if (partitionOf(`acme/${name}`, 2) !== object % 2) continue
    if (left-- === 0) return name
  }
}
