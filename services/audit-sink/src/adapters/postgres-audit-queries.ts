import type { Database, SqlValue } from '@weir/postgres'
import type { Question } from '../domain/question.ts'
import type { StoryRow } from '../domain/story.ts'
import type { AuditQueries, CoverageRow, MessageFilter, RawMessage, TenantScope } from '../ports.ts'

const storyColumns = `leaf_index as "leafIndex", kind, topic, partition, "offset", timestamp_ms as "timestampMs", tenant, source,
  encode(event_key, 'hex') as "eventKey", event_key_text as "eventKeyText", subject, run, root_event as "rootEvent", cause,
  decision_id as "decisionId", delivery_id as "deliveryId", agent, verdict, type, attempt, copies, detail`

/** Records without a tenant (what could not be read) are seen only by those who may see all. */
const inScope = '($1::text[] is null or tenant = any ($1))'

/** Messages that a storm repeats. They are counted, not listed; what decided an event is never among them. */
const isRepeat = `(kind in ('received', 'receipt') or verdict = 'dedup:duplicate')`

/** Messages looked at for their events: of an id, and of a subject or run (the latest ones; a storm of repeats can fill many). */
const maxCandidates = 500
const maxSearched = 20_000
/** Messages of one answer: listed ones, repeats counted, and groups of repeats. */
const maxListed = 2_000
const maxCounted = 100_000
const maxGroups = 1_000
const maxLoose = 200

/** Reads the views of migrations 000005 and 000007 with the reader's rights. */
export function createAuditQueries(db: Database): AuditQueries {
  return {
    eventKeys: async (question, scope, limit) => await eventKeys(db, question, scope, limit),
    loose: async ({ column, value }, scope) => {
      if (column === 'event_key') return []
      const rows = await db.query<StoryRow & object>(
        `select ${storyColumns} from audit.messages where ${inScope} and ${column} = $2 and event_key is null
         order by leaf_index desc limit ${maxLoose}`,
        [scope, value],
      )
      return rows.reverse()
    },
    story: async (keys, scope) => {
      if (keys.length === 0) return { rows: [], complete: true }
      const listed = await db.query<StoryRow & object>(
        `select ${storyColumns} from audit.messages
         where ${inScope} and event_key = any ($2) and ${isRepeat} is not true order by leaf_index desc limit ${maxListed + 1}`,
        [scope, keys],
      )
      const repeats = await countRepeats(db, keys, scope)
      const rows = [...listed.slice(0, maxListed), ...repeats.rows].sort((a, b) => a.leafIndex - b.leafIndex)
      return { rows, complete: listed.length <= maxListed && repeats.complete }
    },
    named: async (ids, scope, limit) => await linkedKeys(db, ['event_key_text', 'decision_id'], { ids, scope, limit }),
    consequences: async (ids, scope, limit) => await linkedKeys(db, ['root_event', 'cause'], { ids, scope, limit }),
    messages: async (filter, scope) => {
      const { where, params } = conditions(filter)
      return await db.query<StoryRow & object>(
        `select ${storyColumns} from audit.messages where ${[inScope, ...where].join(' and ')} order by leaf_index limit $2`,
        [scope, filter.limit + 1, ...params],
      )
    },
    message: async (leafIndex, scope) => {
      const [row] = await db.query<RawMessage & object>(
        `select ${storyColumns}, key, value, headers from audit.messages where ${inScope} and leaf_index = $2`,
        [scope, leafIndex],
      )
      return row ?? null
    },
    coverage: async () =>
      await db.query<CoverageRow & object>(
        `select topic, log_id as "logId", partition, first_offset as "firstOffset", next_offset as "nextOffset", messages
         from audit.coverage order by topic, log_id, partition`,
      ),
  }
}

/** An id names one event or few; a subject or a run can have any number, of which the latest are wanted. */
async function eventKeys(db: Database, { column, value }: Question, scope: TenantScope, limit: number) {
  const isId = column !== 'subject' && column !== 'run'
  const rows = await db.query<{ event_key: Buffer; searched: number }>(
    `with found as (
       select event_key, leaf_index from audit.messages
       where ${inScope} and ${column} = ${column === 'event_key' ? `decode($2, 'hex')` : '$2'} and event_key is not null
       ${isId ? `limit ${maxCandidates}` : `order by leaf_index desc limit ${maxSearched}`}
     )
     select event_key, (select count(*) from found)::int as searched
     from found group by event_key order by max(leaf_index) desc limit $3`,
    [scope, value, limit + 1],
  )
  const isCut = !isId && (rows[0]?.searched ?? 0) >= maxSearched
  return { keys: rows.slice(0, limit).map(row => row.event_key), more: rows.length > limit || isCut }
}

/** The first message of each group of repeats that say the same, with the number of deliveries they stand for. */
async function countRepeats(db: Database, keys: readonly Buffer[], scope: TenantScope) {
  const rows = await db.query<StoryRow & { readonly times: number; readonly counted: number }>(
    `with repeat as (
       select event_key as k, kind as same_kind, leaf_index as leaf, coalesce(copies, 1)::bigint as n,
         case kind when 'receipt' then split_part(detail, ';', 1) when 'verdict' then detail end as said
       from audit.messages where ${inScope} and event_key = any ($2) and ${isRepeat} limit ${maxCounted}
     ), first as (
       select min(leaf) as leaf, least(sum(n), 2147483647)::int as times, (select count(*) from repeat)::int as counted
       from repeat group by k, same_kind, said order by min(leaf) limit ${maxGroups}
     )
     select ${storyColumns}, times, counted from first join audit.messages m on m.leaf_index = first.leaf`,
    [scope, keys],
  )
  const counted = rows[0]?.counted ?? 0
  return {
    rows: rows.map(({ times, ...row }): StoryRow => ({ ...row, copies: times })),
    complete: counted < maxCounted && rows.length < maxGroups,
  }
}

async function linkedKeys(
  db: Database,
  columns: readonly string[],
  { ids, scope, limit }: { readonly ids: readonly string[]; readonly scope: TenantScope; readonly limit: number },
): Promise<readonly Buffer[]> {
  if (ids.length === 0) return []
  const found = columns.map(
    column =>
      `(select event_key, leaf_index from audit.messages
        where ${inScope} and ${column} = any ($2) and event_key is not null order by leaf_index desc limit ${maxCandidates})`,
  )
  const rows = await db.query<{ event_key: Buffer }>(
    `select event_key from (${found.join(' union all ')}) as found group by event_key order by max(leaf_index) desc limit $3`,
    [scope, ids, limit],
  )
  return rows.map(row => row.event_key)
}

/** `$1` is the scope and `$2` the limit. */
function conditions(filter: MessageFilter): { readonly where: string[]; readonly params: SqlValue[] } {
  const params: SqlValue[] = []
  const bind = (value: SqlValue): string => `$${params.push(value) + 2}`
  const where = [`leaf_index > ${bind(filter.after)}`]
  for (const { column, value } of filter.questions) {
    where.push(column === 'event_key' ? `event_key = decode(${bind(value)}, 'hex')` : `${column} = ${bind(value)}`)
  }
  if (filter.agent !== null) where.push(`agent = ${bind(filter.agent)}`)
  if (filter.kind !== null) where.push(`kind = ${bind(filter.kind)}`)
  if (filter.fromMs !== null) where.push(`timestamp_ms >= ${bind(filter.fromMs)}`)
  if (filter.toMs !== null) where.push(`timestamp_ms < ${bind(filter.toMs)}`)
  return { where, params }
}
