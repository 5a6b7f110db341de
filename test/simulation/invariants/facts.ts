// What the logs hold, read by scanning them: not through the code that wrote them.
import type { Coordinate, LogRecord } from '@weir/core'
import { inputOf } from '@weir/kafka'
import type { Decision } from '@weir/schemas'
import type { World } from '../context.ts'

export interface Emitted {
  readonly eventKey: string
  readonly deliveryId: string
  readonly orderingKey: string
  readonly partition: number
  readonly offset: number
  /** Coordinate of the record it came from. */
  readonly input: Coordinate
}

/** Committed records of one topic, partition by partition. */
export function committedOf(world: World, topic: string): LogRecord[] {
  const count = world.cluster.topic(topic)?.partitions.length ?? 0
  return Array.from({ length: count }, (_, partition) => partition).flatMap(partition =>
    world.cluster
      .log({ topic, partition })
      .scan()
      .flatMap(({ record, state }) => (state === 'committed' ? [record] : [])),
  )
}

export function emittedEvents(world: World): Emitted[] {
  return committedOf(world, world.topics.events).flatMap(record => {
    const decoded = world.codec.decodeEvent(record.value)
    const input = inputOf(record)
    if (decoded.kind === 'fault' || input === null) return []
    const { eventKey, deliveryId, orderingKey } = decoded.value
    const { partition, offset } = record
    return [{ eventKey: eventKey.toString('hex'), deliveryId, orderingKey, partition, offset, input }]
  })
}

export function decisionsOf(world: World, stage: string): Decision[] {
  return committedOf(world, world.topics.decisions).flatMap(record => {
    const decoded = world.codec.decodeDecision(record)
    return decoded.kind === 'ok' && decoded.value.stage === stage ? [decoded.value] : []
  })
}

export interface Delivered {
  readonly agent: string
  readonly eventKey: string
  readonly decisionId: string
  readonly attempt: number
  readonly orderingKey: string
  readonly partition: number
  readonly offset: number
}

export function deliveredTo(world: World): Delivered[] {
  return world.agents.flatMap(agent =>
    committedOf(world, world.topics.agentPrefix + agent).map(record => {
      const header = (name: string): string => record.headers.find(([key]) => key === name)?.[1].toString() ?? ''
      return {
        agent,
        eventKey: header('ce_id'),
        decisionId: header('ce_decisionid'),
        attempt: Number(header('ce_attempt')),
        orderingKey: record.key?.toString() ?? '',
        partition: record.partition,
        offset: record.offset,
      }
    }),
  )
}

export const placeOf = ({ logId, partition, offset }: Coordinate): string => `${logId}:${partition}:${offset}`
