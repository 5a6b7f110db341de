import type { LogPosition, OwnerStore } from '@weir/core'
import type { Queryable } from './database.ts'

interface TakenRow {
  readonly epoch: number
  readonly topic: string | null
  readonly log_id: string | null
  readonly emitted_below: number | null
  readonly claimed_at_ms: number | null
}

/** Owner rows in Postgres: `weir.take_over` and `weir.own` of migration 000001. */
export function createOwnerStore(db: Queryable): OwnerStore {
  return {
    takeOver: async (stage, partition) => {
      const rows = await db.query<TakenRow>('select * from weir.take_over($1, $2)', [stage, partition])
      const epoch = BigInt(rows[0]?.epoch ?? 0)
      return { ownership: { stage, partition, epoch }, positions: rows.flatMap(toPosition) }
    },
    advance: async (ownership, positions) => {
      const [row] = await db.query<{ mine: boolean }>(
        'select weir.own($1, $2, $3, $4, $5, $6, $7) as mine',
        [ownership.stage, ownership.partition, ownership.epoch, ...positionArrays(positions)],
        { prepareAs: 'weir_own' },
      )
      return row?.mine === true
    },
  }
}

/** The four parallel arrays that `weir.own`, and every claim function around it, takes for positions. */
export function positionArrays(
  positions: readonly LogPosition[],
): readonly [topics: string[], logIds: string[], emittedBelow: number[], claimedAtMs: number[]] {
  return [
    positions.map(position => position.topic),
    positions.map(position => position.logId),
    positions.map(position => position.emittedBelow),
    positions.map(position => position.claimedAtMs),
  ]
}

function toPosition(row: TakenRow): LogPosition[] {
  if (row.topic === null || row.log_id === null || row.emitted_below === null || row.claimed_at_ms === null) return []
  return [{ topic: row.topic, logId: row.log_id, emittedBelow: row.emitted_below, claimedAtMs: row.claimed_at_ms }]
}
