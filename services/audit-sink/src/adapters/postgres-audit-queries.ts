import type { Database, SqlValue } from '@weir/postgres'
import type { Question } from '../domain/question.ts'
import type { StoryRow } from '../domain/story.ts'

/** Tenants an analyst may see; `null`: all. */
export type TenantScope = readonly string[] | null

export interface MessageFilter {
  readonly questions: readonly Question[]
  readonly agent: string | null
  readonly kind: string | null
  readonly fromMs: number | null
  readonly toMs: number | null
  /** Only leaves above this one. */
  readonly after: number
  readonly limit: number
}

interface RawMessage extends StoryRow {
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: Buffer
}

interface CoverageRow {
  readonly topic: string
  readonly logId: string
  readonly partition: number
  readonly firstOffset: number
  readonly nextOffset: number
  readonly messages: number
}

export interface AuditQueries {
  /** Latest events (keys) that answer the question, newest first, `limit` + 1 at most. */
  eventKeys(question: Question, scope: TenantScope, limit: number): Promise<readonly Buffer[]>
  /** Rows of these events in log order. */
  story(keys: readonly Buffer[], scope: TenantScope, limit: number): Promise<readonly StoryRow[]>
  messages(filter: MessageFilter, scope: TenantScope): Promise<readonly StoryRow[]>
  message(leafIndex: number, scope: TenantScope): Promise<RawMessage | null>
  coverage(): Promise<readonly CoverageRow[]>
}

const storyColumns = `leaf_index as "leafIndex", kind, topic, partition, "offset", timestamp_ms as "timestampMs", tenant, source,
  encode(event_key, 'hex') as "eventKey", event_key_text as "eventKeyText", subject, run, root_event as "rootEvent", cause,
  decision_id as "decisionId", delivery_id as "deliveryId", agent, verdict, type, attempt, copies, detail`

/** Records without a tenant (what could not be read) are seen only by those who may see all. */
const inScope = '($1::text[] is null or tenant = any ($1))'

/** Reads the views of migration 000005 with the reader's rights. */
export function createAuditQueries(db: Database): AuditQueries {
  return {
    eventKeys: async ({ column, value }, scope, limit) => {
      const rows = await db.query<{ event_key: Buffer }>(
        `select event_key from audit.messages
         where ${inScope} and ${column} = ${column === 'event_key' ? `decode($2, 'hex')` : '$2'} and event_key is not null
         group by event_key order by max(leaf_index) desc limit $3`,
        [scope, value, limit + 1],
      )
      return rows.map(row => row.event_key)
    },
    story: async (keys, scope, limit) =>
      await db.query<StoryRow & object>(
        `select ${storyColumns} from audit.messages where ${inScope} and event_key = any ($2) order by leaf_index limit $3`,
        [scope, keys, limit],
      ),
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
