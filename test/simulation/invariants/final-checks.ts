// Checked when nothing moves any more.
import { committedOf, decisionsOf, deliveredTo, emittedEvents, type Emitted } from './facts.ts'
import { checkCommit } from './log-checks.ts'
import type { Sent } from '../monitor.ts'
import type { World } from '../context.ts'

export function checkFinal(world: World): void {
  checkCommit(world)
  const events = emittedEvents(world)
  acksAreInTheLog(world)
  expectedAreEmitted(world, events)
  everyDeliveryEnds(world)
  unreadableAreParked(world)
  eventsKeepOrder(world, events)
  if (!world.scenario.stages.includes('policy')) return
  agentsGetAll(world, events)
  agentsKeepOrder(world, events)
  nothingWaits(world)
}

/** 10: a 2xx means there is a record in the log. */
function acksAreInTheLog({ monitor, cluster, topics }: World): void {
  for (const { ackedAtStep, offset, partition, number } of monitor.sent) {
    if (ackedAtStep === null) continue
    const isThere = cluster
      .log({ topic: topics.raw, partition })
      .scan()
      .some(({ record }) => record.offset === offset)
    if (!isThere)
      monitor.violate('an acknowledged delivery is in the log', `delivery ${number} is not at offset ${offset}`)
  }
}

/** 5 and 12: what is delivered depends on what was sent, and on nothing that happened. */
function expectedAreEmitted({ monitor }: World, events: readonly Emitted[]): void {
  const emitted = new Set(events.map(({ eventKey }) => eventKey))
  const readable = monitor.sent.filter(sent => sent.isReadable && sent.ackedAtStep !== null)
  const byBusiness = new Map<number, Sent[]>()
  for (const sent of readable) {
    if (sent.business === null) {
      if (!emitted.has(sent.eventKey)) lost(monitor, sent)
    } else byBusiness.set(sent.business, [...(byBusiness.get(sent.business) ?? []), sent])
  }
  for (const [business, sents] of byBusiness) {
    const through = new Set(sents.map(({ eventKey }) => eventKey).filter(key => emitted.has(key)))
    if (through.size === 1) continue
    monitor.violate(
      'a business key lets one event through',
      `${through.size} events of business key ${business} were emitted`,
    )
  }
}

function lost(monitor: World['monitor'], { number, event, eventKey, offset }: Sent): void {
  monitor.violate(
    'an accepted event is not lost',
    `event ${event} (${eventKey.slice(0, 8)}), accepted as delivery ${number} at offset ${offset}, was never emitted`,
  )
}

/** 5: each record of weir.raw has its decision, one alone or counted with its repeats. */
function everyDeliveryEnds(world: World): void {
  const { codec, monitor, topics } = world
  const wanted = new Map<string, number>()
  const places = new Map<string, number>()
  for (const record of committedOf(world, topics.raw)) {
    const decoded = codec.decodeRaw(record)
    if (decoded.kind === 'fault') continue
    const key = decoded.value.eventKey.toString('hex')
    const isForwarded = monitor.sent.some(
      sent => sent.isMisplaced && sent.deliveryId === decoded.value.deliveryId && sent.partition === record.partition,
    )
    if (!isForwarded) wanted.set(key, (wanted.get(key) ?? 0) + decoded.value.copies)
  }
  for (const decision of decisionsOf(world, 'dedup')) {
    if (decision.deliveryId === '') continue
    const key = decision.eventKey.toString('hex')
    wanted.set(key, (wanted.get(key) ?? 0) - decision.copies)
    const place = `${decision.input.logId}:${decision.input.partition}:${decision.input.offset}`
    places.set(place, (places.get(place) ?? 0) + 1)
  }
  for (const [key, left] of wanted) {
    if (left !== 0)
      monitor.violate('every delivery ends once', `event ${key.slice(0, 8)}: ${left} copies have no decision`)
  }
  for (const [place, count] of places) {
    if (count > 1) monitor.violate('every delivery ends once', `the record at ${place} has ${count} decisions`)
  }
}

function unreadableAreParked(world: World): void {
  const { codec, monitor, topics } = world
  const unreadable = committedOf(world, topics.raw).filter(record => codec.decodeRaw(record).kind === 'fault').length
  const parked = committedOf(world, topics.parked).length
  if (parked !== unreadable) {
    monitor.violate('what cannot be read is parked once', `${unreadable} unreadable records, ${parked} parked`)
  }
}

/** 6 and 7: order of acceptance, in the log and across senders that waited for an answer. */
function eventsKeepOrder({ monitor, scenario }: World, events: readonly Emitted[]): void {
  const last = new Map<string, number>()
  for (const { orderingKey, partition, input, offset } of events) {
    const key = `${partition}/${orderingKey}`
    if (input.partition === partition && input.offset < (last.get(key) ?? -1)) {
      monitor.violate(
        'events keep the order of acceptance',
        `${orderingKey} at weir.events-${partition} offset ${offset}`,
      )
    }
    last.set(key, input.offset)
  }
  const misplaced = new Set(monitor.sent.filter(sent => sent.isMisplaced).map(({ eventKey }) => eventKey))
  const isPlain = (key: string): boolean => !misplaced.has(key)
  for (const [i, a] of events.entries()) {
    for (const b of events.slice(i + 1)) {
      if (a.orderingKey !== b.orderingKey || !isPlain(a.eventKey) || !isPlain(b.eventKey)) continue
      const [first, second] = a.partition === b.partition ? [a, b] : [null, null]
      if (first === null || second === null) {
        monitor.violate('one ordering key has one partition', `${a.orderingKey} of ${scenario.partitions}`)
        continue
      }
      // The later one was accepted before the earlier one was sent at all.
      const acked = firstAck(monitor, second.eventKey)
      const sent = firstSent(monitor, first.eventKey)
      if (acked !== null && sent !== null && acked < sent) {
        monitor.violate(
          'what was accepted before another was sent stays before it',
          `${second.eventKey.slice(0, 8)} was accepted first and stands behind ${first.eventKey.slice(0, 8)}`,
        )
      }
    }
  }
}

function firstAck(monitor: World['monitor'], eventKey: string): number | null {
  const acks = monitor.sent.flatMap(sent =>
    sent.eventKey === eventKey && sent.isReadable && sent.ackedAtStep !== null ? [sent.ackedAtStep] : [],
  )
  return acks.length === 0 ? null : Math.min(...acks)
}

function firstSent(monitor: World['monitor'], eventKey: string): number | null {
  const times = monitor.sent.flatMap(sent => (sent.eventKey === eventKey ? [sent.sentAtStep] : []))
  return times.length === 0 ? null : Math.min(...times)
}

/** Each event is delivered to each of its agents, or there is a decision that says why not. */
function agentsGetAll(world: World, events: readonly Emitted[]): void {
  const delivered = new Set(deliveredTo(world).map(({ agent, eventKey }) => `${agent}/${eventKey}`))
  const denied = new Set(
    decisionsOf(world, 'policy')
      .filter(({ verdict }) => verdict === 'deny' || verdict === 'parked')
      .map(({ agent, eventKey }) => `${agent}/${eventKey.toString('hex')}`),
  )
  const mayDeny = world.scenario.budgets === 'deny'
  for (const { eventKey } of events) {
    for (const agent of world.agents) {
      const key = `${agent}/${eventKey}`
      if (delivered.has(key) === denied.has(key) || (denied.has(key) && !mayDeny)) {
        world.monitor.violate(
          'an emitted event reaches each of its agents, or is refused',
          `${agent}, event ${eventKey.slice(0, 8)}: delivered ${delivered.has(key)}, refused ${denied.has(key)}`,
        )
      }
    }
  }
}

/** 6: the order of an agent's topic is that of acceptance. */
function agentsKeepOrder(world: World, events: readonly Emitted[]): void {
  const places = new Map(events.map(event => [event.eventKey, event]))
  const last = new Map<string, number>()
  for (const { agent, eventKey, orderingKey, partition } of deliveredTo(world)) {
    const place = places.get(eventKey)
    if (place === undefined) continue
    const key = `${agent}/${partition}/${orderingKey}`
    if (place.offset < (last.get(key) ?? -1)) {
      world.monitor.violate(
        'nothing overtakes on the way to an agent',
        `${agent}: event ${eventKey.slice(0, 8)} came late`,
      )
    }
    last.set(key, Math.max(place.offset, last.get(key) ?? -1))
  }
}

/** 8: no waiting row outlives the end of its delivery. */
function nothingWaits({ tables, monitor }: World): void {
  for (const { decisionId, nextAttempt } of tables.waiting.values()) {
    monitor.violate('nothing waits for ever', `decision ${decisionId} waits for attempt ${nextAttempt}`)
  }
}
