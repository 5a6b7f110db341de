import type { Coordinate, Header } from './log.ts'
import { parkedHeaders } from './topics.ts'

/** Why a record was parked, by which stage, and where it stood. */
export interface ParkedFacts extends Coordinate {
  readonly code: string
  readonly detail: string
  readonly stage: string
  readonly topic: string
  readonly timestampMs: number
  /** Of one delivery: which. */
  readonly delivery: { readonly agent: string; readonly decisionId: string } | null
}

/** The headers that a parked record gets beside its own. */
export function parkedHeadersOf(facts: ParkedFacts): Header[] {
  const { code, detail, stage, topic, logId, partition, offset, timestampMs, delivery } = facts
  const texts: Record<string, string> = {
    [parkedHeaders.reason]: code,
    [parkedHeaders.detail]: detail,
    [parkedHeaders.stage]: stage,
    [parkedHeaders.topic]: topic,
    [parkedHeaders.logId]: logId,
    [parkedHeaders.partition]: String(partition),
    [parkedHeaders.offset]: String(offset),
    [parkedHeaders.timestampMs]: String(timestampMs),
    ...(delivery === null
      ? {}
      : { [parkedHeaders.agent]: delivery.agent, [parkedHeaders.decisionId]: delivery.decisionId }),
  }
  return Object.entries(texts).map(([name, text]): Header => [name, Buffer.from(text, 'utf8')])
}
