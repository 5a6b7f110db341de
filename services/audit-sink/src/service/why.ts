// Answers "why": the events a question is about, what led to them and what followed, within fixed bounds.
import type { Question } from '../domain/question.ts'
import { tell, type EventStory, type StoryRow } from '../domain/story.ts'
import type { AuditQueries, TenantScope } from '../ports.ts'

/** Bounds of one answer: events told in full, events linked to them, and how far causes are followed back. */
const maxEvents = 20
const maxRelated = 10
const maxCauseDepth = 3

export interface Why {
  readonly question: Question
  /** The event that moved last comes first. */
  readonly events: readonly EventStory[]
  readonly sentences: readonly string[]
  /** The question is about older events as well, or may be: only the latest 20,000 messages of a subject or run are searched. */
  readonly moreEvents: boolean
  /** False when an event has more messages than are told here; `GET /v1/messages` has them all. */
  readonly complete: boolean
  /** Events that led to these, by their cause and root event, and events that name these as their cause or root. */
  readonly related: readonly (EventStory & { readonly relation: 'led_to_it' | 'followed' })[]
}

/** The answer to the first of these questions that something is known about; null when nothing is. */
export async function answerWhy(
  queries: AuditQueries,
  asked: readonly Question[],
  scope: TenantScope,
): Promise<Why | null> {
  for (const question of asked) {
    const found = await queries.eventKeys(question, scope, maxEvents)
    const loose = await queries.loose(question, scope)
    if (found.keys.length === 0 && loose.length === 0) continue
    const story = await queries.story(found.keys, scope)
    const rows = [...story.rows, ...loose]
    const events = tell(rows)
    return {
      question,
      events,
      sentences: events.flatMap(event => event.steps.map(step => step.sentence)),
      moreEvents: found.more,
      complete: story.complete,
      related: await relatedTo(queries, rows, scope),
    }
  }
  return null
}

async function relatedTo(
  queries: AuditQueries,
  rows: readonly StoryRow[],
  scope: TenantScope,
): Promise<Why['related']> {
  const known = new Set(rows.flatMap(row => row.eventKey ?? []))
  const newest = (keys: readonly Buffer[]): Buffer[] => keys.filter(key => !known.has(key.toString('hex')))
  const related: Why['related'][number][] = []
  const add = async (keys: readonly Buffer[], relation: 'led_to_it' | 'followed'): Promise<readonly StoryRow[]> => {
    for (const key of keys) known.add(key.toString('hex'))
    const story = await queries.story(keys, scope)
    related.push(...tell(story.rows).map(event => ({ ...event, relation })))
    return story.rows
  }

  const ids = distinct(rows.flatMap(row => [row.eventKeyText, row.decisionId]))
  const after = newest(await queries.consequences(ids, scope, maxRelated + known.size)).slice(0, maxRelated)
  let frontier = rows
  for (let depth = 0; depth < maxCauseDepth && related.length < maxRelated; depth++) {
    const causes = distinct(frontier.flatMap(row => (row.kind === 'released' ? [] : [row.cause, row.rootEvent])))
    const before = newest(await queries.named(causes, scope, maxRelated + known.size))
    if (before.length === 0) break
    frontier = await add(before.slice(0, maxRelated - related.length), 'led_to_it')
  }
  if (after.length > 0) await add(newest(after), 'followed')
  return related
}

function distinct(texts: readonly (string | null)[]): string[] {
  return [...new Set(texts.filter(text => text !== null))]
}
