import { WeirError } from '@weir/core'
import { createOwnerStore, type CopyColumn, type CopyValue, type Database, type Transaction } from '@weir/postgres'
import { packHeaders } from '../domain/columns.ts'
import type { AuditStore, LandingPart, LandingRow, LogProgress } from '../ports.ts'

const stage = 'audit-sink'

const columns: readonly CopyColumn[] = [
  { name: 'leaf_index', type: 'int8' },
  { name: 'log_date', type: 'date' },
  { name: 'kind', type: 'text' },
  { name: 'topic', type: 'text' },
  { name: 'log_id', type: 'uuid' },
  { name: 'partition', type: 'int4' },
  { name: 'offset', type: 'int8' },
  { name: 'timestamp_ms', type: 'int8' },
  { name: 'key', type: 'bytea' },
  { name: 'value', type: 'bytea' },
  { name: 'headers', type: 'bytea' },
  { name: 'tenant', type: 'text' },
  { name: 'source', type: 'text' },
  { name: 'event_key', type: 'bytea' },
  { name: 'event_key_text', type: 'text' },
  { name: 'subject', type: 'text' },
  { name: 'run', type: 'text' },
  { name: 'root_event', type: 'text' },
  { name: 'cause', type: 'text' },
  { name: 'decision_id', type: 'text' },
  { name: 'delivery_id', type: 'text' },
  { name: 'agent', type: 'text' },
  { name: 'verdict', type: 'text' },
  { name: 'type', type: 'text' },
  { name: 'attempt', type: 'int4' },
  { name: 'copies', type: 'int4' },
  { name: 'trace_id', type: 'text' },
  { name: 'detail', type: 'text' },
  { name: 'opaque', type: 'text' },
]

/** The store of migration 000005: one transaction per landing, fenced by the owner row. */
export function createAuditStore(db: Database, faultPoint: (name: string) => void): AuditStore {
  const owners = createOwnerStore(db)
  return {
    takeOver: async () => (await owners.takeOver(stage, 0)).ownership,
    positions: async () => {
      const sql = 'select topic, log_id, partition, next_offset from audit.position'
      const rows = await db.query<{ topic: string; log_id: string; partition: number; next_offset: number }>(sql)
      return rows.map(row => ({
        topic: row.topic,
        logId: row.log_id,
        partition: row.partition,
        nextOffset: row.next_offset,
      }))
    },
    begin: async ({ topic, logId, partition, nextOffset }) => {
      await db.query(
        `insert into audit.position (log_id, partition, topic, first_offset, next_offset) values ($1, $2, $3, $4, $4)
         on conflict do nothing`,
        [logId, partition, topic, nextOffset],
      )
    },
    land: async (ownership, parts) =>
      await db.transaction(async tx => {
        const mine = await tx.query<{ mine: boolean }>(`select weir.own($1, $2, $3, '{}', '{}', '{}', '{}') as mine`, [
          ownership.stage,
          ownership.partition,
          ownership.epoch,
        ])
        if (mine[0]?.mine !== true) return false
        await write(tx, parts, faultPoint)
        return true
      }),
    ensurePartitions: async daysAhead => {
      const [row] = await db.query<{ days: number }>('select audit.ensure_partitions($1) as days', [daysAhead])
      return row?.days ?? 0
    },
  }
}

async function write(
  tx: Transaction,
  parts: readonly LandingPart[],
  faultPoint: (name: string) => void,
): Promise<void> {
  // A day never begins before the one of the last leaf: a day is one contiguous range of leaves.
  const [head] = await tx.query<{ size: number; log_date: string }>(
    `select size, greatest(log_date, (now() at time zone 'UTC')::date)::text as log_date from audit.head for update`,
  )
  if (head === undefined) throw new WeirError('internal', 'audit.head has no row')
  await movePositions(tx, parts)
  let leaf = head.size
  const firstLeaves = parts.map(part => {
    const first = leaf
    leaf += part.rows.length
    return first
  })
  const rows = parts.flatMap((part, i) =>
    part.rows.map((row, k) => toCopy(row, part.log, (firstLeaves[i] ?? 0) + k, head.log_date)),
  )
  faultPoint('audit.before-copy')
  if (rows.length > 0) await tx.copyBinary('audit.message', columns, rows)
  await insertIntervals(tx, parts, firstLeaves)
  await tx.query('update audit.head set size = $1, log_date = $2', [leaf, head.log_date])
  faultPoint('audit.before-commit')
}

/** Compare-and-set: a part lands only where the last one ended. */
async function movePositions(tx: Transaction, parts: readonly LandingPart[]): Promise<void> {
  const moved = await tx.query(
    `update audit.position p set next_offset = g.next_offset, messages = p.messages + g.messages
     from unnest($1::uuid[], $2::int[], $3::bigint[], $4::bigint[], $5::bigint[])
       as g (log_id, partition, start_offset, next_offset, messages)
     where p.log_id = g.log_id and p.partition = g.partition and p.next_offset = g.start_offset
     returning 1`,
    [
      parts.map(part => part.log.logId),
      parts.map(part => part.log.partition),
      parts.map(part => part.log.nextOffset),
      parts.map(part => part.nextOffset),
      parts.map(part => part.rows.length),
    ],
  )
  if (moved.length === parts.length) return
  throw new WeirError(
    'coverage_gap',
    `${parts.length - moved.length} of ${parts.length} parts do not join what landed before`,
    {
      context: { parts: parts.map(({ log, nextOffset }) => ({ ...log, upTo: nextOffset })) },
    },
  )
}

async function insertIntervals(
  tx: Transaction,
  parts: readonly LandingPart[],
  firstLeaves: readonly number[],
): Promise<void> {
  await tx.query(
    `insert into audit.landed_interval (log_id, partition, start_offset, next_offset, messages, first_leaf)
     select * from unnest($1::uuid[], $2::int[], $3::bigint[], $4::bigint[], $5::int[], $6::bigint[])`,
    [
      parts.map(part => part.log.logId),
      parts.map(part => part.log.partition),
      parts.map(part => part.log.nextOffset),
      parts.map(part => part.nextOffset),
      parts.map(part => part.rows.length),
      firstLeaves,
    ],
  )
}

function toCopy({ record, columns: c }: LandingRow, log: LogProgress, leaf: number, logDate: string): CopyValue[] {
  return [
    leaf,
    logDate,
    c.kind,
    record.topic,
    log.logId,
    record.partition,
    record.offset,
    record.timestampMs,
    record.key,
    record.value,
    packHeaders(record.headers),
    c.tenant,
    c.source,
    c.eventKey,
    c.eventKeyText,
    c.subject,
    c.run,
    c.rootEvent,
    c.cause,
    c.decisionId,
    c.deliveryId,
    c.agent,
    c.verdict,
    c.type,
    c.attempt,
    c.copies,
    c.traceId,
    c.detail,
    c.opaque,
  ]
}
