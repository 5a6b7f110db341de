// weir.take_over and weir.own of migration 000001.
import type { LogPosition, Ownership } from '@weir/core'
import { ownerKey, positionKey, type Tables } from './tables.ts'

export interface OwnerModel {
  takeOver(
    stage: string,
    partition: number,
  ): { readonly ownership: Ownership; readonly positions: readonly LogPosition[] }
  /** Proves ownership and stores positions; false, with nothing written, when the epoch is out of date. */
  own(ownership: Ownership, positions: readonly LogPosition[]): boolean
}

export function createOwnerModel(tables: Tables): OwnerModel {
  return {
    takeOver: (stage, partition) => {
      const key = ownerKey(stage, partition)
      const epoch = (tables.owners.get(key)?.epoch ?? 0n) + 1n
      tables.owners.set(key, { epoch })
      return { ownership: { stage, partition, epoch }, positions: positionsOf(tables, stage, partition) }
    },
    own: ({ stage, partition, epoch }, positions) => {
      if (tables.owners.get(ownerKey(stage, partition))?.epoch !== epoch) return false
      for (const position of positions) store(tables, stage, partition, position)
      return true
    },
  }
}

/** By topic and log, as the function returns them. */
function positionsOf(tables: Tables, stage: string, partition: number): LogPosition[] {
  return [...tables.positions.values()]
    .filter(row => row.stage === stage && row.partition === partition)
    .sort((a, b) => compare(a.topic, b.topic) || compare(a.logId, b.logId))
    .map(({ topic, logId, emittedBelow, claimedAtMs }) => ({ topic, logId, emittedBelow, claimedAtMs }))
}

/** Positions only move forward. */
function store(tables: Tables, stage: string, partition: number, given: LogPosition): void {
  const key = positionKey(stage, partition, given.topic, given.logId)
  const known = tables.positions.get(key)
  tables.positions.set(key, {
    stage,
    partition,
    topic: given.topic,
    logId: given.logId,
    emittedBelow: Math.max(known?.emittedBelow ?? 0, given.emittedBelow),
    claimedAtMs: Math.max(known?.claimedAtMs ?? 0, given.claimedAtMs),
  })
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
