// Checked at every commit: what must hold at any time.
import { deliveredTo, emittedEvents, placeOf, type Emitted } from './facts.ts'
import { ledgerFolds } from './ledger.ts'
import type { World } from '../context.ts'

export function checkCommit(world: World): void {
  noteCommitted(world)
  const events = emittedEvents(world)
  onceInEvents(world, events)
  winnersHaveRecords(world, events)
  if (!world.scenario.stages.includes('policy')) return
  onceInAgentTopics(world)
  ledgerFolds(world)
}

function noteCommitted({ scenario, cluster, monitor, topics }: World): void {
  for (const stage of scenario.stages) {
    for (const topic of stage === 'dedup' ? [topics.raw] : [topics.events, topics.released]) {
      const logId = cluster.topic(topic)?.logId ?? ''
      for (let partition = 0; partition < scenario.partitions; partition++) {
        monitor.noteCommitted(
          `${stage}/${topic}/${partition}/${logId}`,
          cluster.committedOffset(stage, { topic, partition }),
        )
      }
    }
  }
}

/** 1: per event, and so per admission id, at most one record in weir.events. */
function onceInEvents({ monitor }: World, events: readonly Emitted[]): void {
  const seen = new Map<string, Emitted>()
  for (const event of events) {
    const before = seen.get(event.eventKey)
    if (before !== undefined) {
      monitor.violate(
        'an event is emitted once',
        `weir.events-${event.partition} holds event ${event.eventKey.slice(0, 8)} twice, at ${before.offset} and ${event.offset}`,
      )
    }
    seen.set(event.eventKey, event)
  }
}

/** 2: a claim that is let through and lies below the committed offset has its record. */
function winnersHaveRecords({ tables, cluster, monitor, topics }: World, events: readonly Emitted[]): void {
  const emitted = new Set(events.map(({ input }) => placeOf(input)))
  const losers = new Set<string>()
  const holders = new Set([...tables.business.values()].map(({ eventKey }) => eventKey))
  for (const sent of monitor.sent) if (sent.business !== null && !holders.has(sent.eventKey)) losers.add(sent.eventKey)
  for (const [key, claim] of tables.claims) {
    if (claim.logId !== cluster.topic(topics.raw)?.logId) continue
    const place = { topic: topics.raw, partition: claim.partition }
    const committed = cluster.committedOffset('dedup', place) ?? 0
    if (claim.offset >= committed || losers.has(key) || emitted.has(placeOf(claim))) continue
    monitor.violate(
      'a winner below the committed offset has its record',
      `event ${key.slice(0, 8)} was won at ${topics.raw}-${claim.partition} offset ${claim.offset}, committed is ${committed}`,
    )
  }
}

/** 1: per decision id, and per event and agent, at most one record in an agent's topic. */
function onceInAgentTopics(world: World): void {
  const seen = new Set<string>()
  for (const { agent, eventKey, decisionId, attempt } of deliveredTo(world)) {
    const key = `${agent}/${eventKey}`
    if (seen.has(key)) {
      world.monitor.violate(
        'an agent gets an event once',
        `${agent} has event ${eventKey.slice(0, 8)} twice (decision ${decisionId}, attempt ${attempt})`,
      )
    }
    seen.add(key)
  }
}
