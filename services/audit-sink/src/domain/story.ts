// The answer to "why": what happened to an event, one sentence per step, in the order of the store.

/** A row of the store as the API reads it. */
export interface StoryRow {
  readonly leafIndex: number
  readonly kind: string
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly timestampMs: number
  readonly tenant: string | null
  readonly source: string | null
  readonly eventKey: string | null
  readonly eventKeyText: string | null
  readonly subject: string | null
  readonly run: string | null
  readonly rootEvent: string | null
  readonly cause: string | null
  readonly decisionId: string | null
  readonly deliveryId: string | null
  readonly agent: string | null
  readonly verdict: string | null
  readonly type: string | null
  readonly attempt: number | null
  readonly copies: number | null
  readonly detail: string | null
}

interface Step {
  readonly leafIndex: number
  readonly atMs: number
  readonly sentence: string
  /** Where the raw bytes are: `GET /v1/messages/{leafIndex}`. */
  readonly link: string
}

export interface EventStory {
  readonly eventKey: string | null
  readonly eventKeyText: string | null
  readonly steps: readonly Step[]
}

/** Tells the events these rows are about, each in the order of the store; the event that moved last comes first. */
export function tell(rows: readonly StoryRow[]): EventStory[] {
  const byEvent = new Map<string, StoryRow[]>()
  for (const row of [...rows].sort((a, b) => a.leafIndex - b.leafIndex)) {
    // The copy in weir.events says nothing that dedup's verdict does not.
    if (row.kind === 'admitted') continue
    const key = row.eventKey ?? row.decisionId ?? `leaf ${row.leafIndex}`
    const known = byEvent.get(key)
    if (known === undefined) byEvent.set(key, [row])
    else known.push(row)
  }
  const stories = [...byEvent.values()].map(tellOne)
  return stories.sort((a, b) => (b.steps.at(-1)?.leafIndex ?? 0) - (a.steps.at(-1)?.leafIndex ?? 0))
}

function tellOne(rows: readonly StoryRow[]): EventStory {
  const named = rows.find(row => row.eventKeyText !== null)
  return {
    eventKey: rows.find(row => row.eventKey !== null)?.eventKey ?? null,
    eventKeyText: named?.eventKeyText ?? null,
    steps: merged(rows).map(({ row, times }) => ({
      leafIndex: row.leafIndex,
      atMs: row.timestampMs,
      sentence: `${utc(row.timestampMs)} ${sentenceOf(row, times)}`,
      link: `/v1/messages/${row.leafIndex}`,
    })),
  }
}

/** Steps that say the same of many deliveries are told once: a storm of repeats is one sentence. */
function merged(rows: readonly StoryRow[]): { readonly row: StoryRow; readonly times: number }[] {
  const told: { row: StoryRow; times: number }[] = []
  const repeated = new Map<string, { row: StoryRow; times: number }>()
  for (const row of rows) {
    const times = row.copies ?? 1
    const isRepeat = row.kind === 'receipt' || row.verdict === 'dedup:duplicate' || row.kind === 'received'
    const group = isRepeat ? `${row.kind} ${row.verdict ?? ''} ${sameText(row)}` : ''
    const known = repeated.get(group)
    if (isRepeat && known !== undefined) {
      known.times += times
      continue
    }
    const step = { row, times }
    told.push(step)
    if (isRepeat) repeated.set(group, step)
  }
  return told
}

/** Repeats are told together when this is the same: a duplicate that came with another payload is told apart. */
function sameText({ kind, detail }: StoryRow): string {
  if (kind === 'received') return ''
  return kind === 'receipt' ? (detail?.split(';')[0] ?? '') : (detail ?? '')
}

function utc(ms: number): string {
  // oxlint-disable-next-line no-restricted-globals -- formats a given time; reads no clock
  return new Date(ms).toISOString().replace('T', ' ')
}

function sentenceOf(row: StoryRow, times: number): string {
  const what = row.type ?? 'a message'
  const about = row.subject === null ? '' : ` about ${row.subject}`
  const because = row.detail === null ? '' : `: ${row.detail}`
  switch (row.kind) {
    case 'received':
      return (
        `${what}${about} arrived for tenant ${row.tenant ?? '?'} through ${row.source ?? '?'} as delivery ${row.deliveryId ?? '?'} ` +
        `(${row.detail ?? 'no detail'})${times > 1 ? `; it arrived ${times} times in all` : ''}.${chain(row)}`
      )
    case 'receipt':
      return `the sender was ${row.detail ?? 'answered'}${times > 1 ? ` (${times} times)` : ''}.`
    case 'verdict':
      return verdictSentence(row, times, because)
    case 'released':
      return `it was due again for agent ${row.agent ?? '?'}: attempt ${row.attempt ?? '?'} began (${row.verdict ?? 'due'}).`
    case 'delivered':
      return `it was delivered to agent ${row.agent ?? '?'} as decision ${row.decisionId ?? '?'}, in ${row.topic}/${row.partition} at offset ${row.offset}.`
    case 'parked':
      return `it was parked${because}.`
    case 'outcome':
      if (row.verdict === 'no_report')
        return `agent ${row.agent ?? '?'} did not report on attempt ${row.attempt ?? '?'} in time.`
      return `agent ${row.agent ?? '?'} reported ${row.verdict ?? '?'} for attempt ${row.attempt ?? '?'}${because}.`
    case 'action_intent':
      return `agent ${row.agent ?? '?'} was about to call ${row.detail ?? '?'}.`
    case 'action_result':
      return `the call of agent ${row.agent ?? '?'} ended ${row.verdict ?? '?'}${because}.`
    default:
      return `${row.kind}${because}.`
  }
}

function chain(row: StoryRow): string {
  const parts = [
    row.run === null ? null : `run ${row.run}`,
    row.cause === null ? null : `caused by ${row.cause}`,
    row.rootEvent === null ? null : `root event ${row.rootEvent}`,
  ].filter(part => part !== null)
  return parts.length === 0 ? '' : ` It belongs to ${parts.join(', ')}.`
}

function verdictSentence(row: StoryRow, times: number, because: string): string {
  const [stage, verdict] = (row.verdict ?? ':').split(':')
  if (stage === 'dedup') {
    if (verdict === 'admitted') return 'dedup let it through as the first of its key.'
    if (verdict === 'duplicate') {
      return `dedup dropped ${times === 1 ? 'a delivery' : `${times} deliveries`} as ${times === 1 ? 'a duplicate' : 'duplicates'}${because}.`
    }
    return `dedup ${verdict ?? 'decided'} it${because}.`
  }
  const agent = row.agent === null || row.agent === '' ? '' : ` for agent ${row.agent}`
  const attempt = (row.attempt ?? 0) > 0 ? ` (attempt ${row.attempt})` : ''
  const verbs: Record<string, string> = {
    allow: 'allowed it',
    defer: 'deferred it',
    hold: 'held it for approval',
    deny: 'denied it',
    stale: 'found it stale',
    parked: 'parked it',
    unrouted: 'found no route for it',
    completed: 'noted that it is done',
    ignored: 'ignored a report',
  }
  const decision = row.decisionId === null ? '' : ` as decision ${row.decisionId}`
  return `policy ${verbs[verdict ?? ''] ?? `decided ${verdict ?? '?'}`}${agent}${attempt}${decision}${because}.`
}
