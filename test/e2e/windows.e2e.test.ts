import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dumpLog } from '../support/log-dump.ts'
import { rawEvent } from '../support/raw-event.ts'
import { publishRaw, untilRead } from '../support/raw-events.ts'
import { startTestSystem, type TestSystem } from '../support/system.ts'

let test: TestSystem
const dayMs = 86_400_000

beforeAll(async () => {
  test = await startTestSystem({ partitions: 3 })
})
afterAll(async () => await test.end())

/** Event ids in a topic, as Kafka's own client reads them. */
async function idsIn(topic: string): Promise<string[]> {
  const ids: string[] = []
  for (const record of await dumpLog(test.urls.WEIR_KAFKA_BROKERS, [topic])) {
    const decoded = await test.codec.decode('RawEvent', record.value)
    if (decoded.kind === 'fault') throw new Error(decoded.detail)
    ids.push(decoded.value.eventId)
  }
  return ids.toSorted()
}

const untilDecided = async (): Promise<void> =>
  await untilRead(test, `${test.system.options.topicPrefix}dedup`, test.topics.raw)

describe('the window of an event with a signed time', () => {
  it('parks what is older, untouched and with the reason, and lets the rest through', async () => {
    await test.system.start('dedup')
    const now = Date.now()
    const signed = (id: string, ageMs: number) =>
      rawEvent(id, 1, { eventTimeMs: now - ageMs, eventTimeSigned: true, orderingKey: 'one' })
    await publishRaw(test, [
      signed('old', 31 * dayMs),
      signed('recent', 29 * dayMs),
      signed('future', -365 * dayMs),
      { ...signed('unsigned', 31 * dayMs), eventTimeSigned: false },
      { ...signed('replayed', 31 * dayMs), replayId: '7d1a8b1e-5f5c-4c0f-9d0b-6a2f3c4e5d60' },
    ])
    await untilDecided()
    expect(await idsIn(test.topics.events)).toEqual(['future', 'recent', 'replayed', 'unsigned'])
    expect(await idsIn(test.topics.parked)).toEqual(['old'])
    const [parked] = await dumpLog(test.urls.WEIR_KAFKA_BROKERS, [test.topics.parked])
    expect(parked?.headers.get('weir-parked-reason')?.toString()).toBe('outside_window')
    // It claimed nothing: what an operator releases is no repeat of itself.
    const claims = await test.db.query<{ text: string }>('select event_key_text as text from dedup.claim order by 1')
    expect(claims.map(claim => claim.text)).not.toContain('acme/shop/old')
  })
})
