import { connect } from 'node:net'
import type { Decision } from '@weir/schemas'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { dumpLog } from '../support/log-dump.ts'
import { untilRead } from '../support/raw-events.ts'
import { flushRedis } from '../support/redis.ts'
import { postEvent, postShop } from '../support/senders.ts'
import { startTestSystem, type TestSystem } from '../support/system.ts'

let test: TestSystem
beforeAll(async () => {
  test = await startTestSystem({ partitions: 3 })
})
afterEach(async () => await test.system.stop())
afterAll(async () => await test.end())

const times = <T>(count: number, work: (i: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, i) => work(i)))

/** How often each event id stands in weir.events once dedup has read everything. */
async function emitted(): Promise<Map<string, number>> {
  await untilRead(test, `${test.system.options.topicPrefix}dedup`, test.topics.raw)
  const counts = new Map<string, number>()
  for (const record of await dumpLog(test.urls.WEIR_KAFKA_BROKERS, [test.topics.events])) {
    const decoded = await test.codec.decode('RawEvent', record.value)
    if (decoded.kind === 'ok') counts.set(decoded.value.eventId, (counts.get(decoded.value.eventId) ?? 0) + 1)
  }
  return counts
}

async function decisionsOf(eventId: string): Promise<Decision[]> {
  const found: Decision[] = []
  for (const record of await dumpLog(test.urls.WEIR_KAFKA_BROKERS, [test.topics.decisions])) {
    const decoded = await test.codec.decode('Decision', record.value)
    if (decoded.kind === 'ok' && decoded.value.eventKeyText.endsWith(`/${eventId}`)) found.push(decoded.value)
  }
  return found
}

function expectOneWinner(answers: readonly { status: number; body: Readonly<Record<string, unknown>> }[]): void {
  const winners = answers.filter(answer => answer.status === 202)
  const losers = answers.filter(answer => answer.status === 409)
  expect([winners.length, losers.length]).toEqual([1, answers.length - 1])
  const original = winners[0]?.body['delivery_id']
  expect(new Set(losers.map(answer => answer.body['original_delivery_id']))).toEqual(new Set([original]))
  expect(new Set(losers.map(answer => answer.body['code']))).toEqual(new Set(['duplicate_event_key']))
}

const body = (key: string, data: unknown = { n: 1 }): string =>
  JSON.stringify({ event_key: key, type: 'order.paid', data })

describe('providers', () => {
  it('answers 100 identical posts at once with 100 × 2xx and delivers the event once', async () => {
    await test.system.startServices(['ingest', 'dedup'])
    const payload = Buffer.from(JSON.stringify({ type: 'order.paid', data: { order_id: 'o-1' } }))
    const answers = await times(100, () => postShop(test, 'msg_storm', payload))
    expect(new Set(answers.map(answer => answer.status))).toEqual(new Set([202]))
    expect((await emitted()).get('msg_storm')).toBe(1)
    const decisions = await decisionsOf('msg_storm')
    expect(decisions.reduce((sum, decision) => sum + decision.copies, 0)).toBe(100)
    expect(decisions.filter(decision => decision.verdict === 'admitted')).toHaveLength(1)
  })
})

describe('API clients', () => {
  it('gives one of 100 identical posts at once 202 and 99 × 409 naming it', async () => {
    await test.system.startServices(['ingest', 'dedup'])
    expectOneWinner(await times(100, () => postEvent(test, body('same-1'))))
    expect((await emitted()).get('same-1')).toBe(1)
  })

  it('does so with Redis stopped', async () => {
    await test.system.start('ingest', { env: { REDIS_URL: 'redis://127.0.0.1:1' } })
    await test.system.start('dedup')
    expectOneWinner(await times(100, () => postEvent(test, body('no-redis'))))
    expect((await emitted()).get('no-redis')).toBe(1)
  })

  it('does so with Redis emptied in the middle', async () => {
    await test.system.startServices(['ingest', 'dedup'])
    const first = times(50, () => postEvent(test, body('flushed')))
    await flushRedis(test.urls.REDIS_URL)
    const answers = [...(await first), ...(await times(50, () => postEvent(test, body('flushed'))))]
    expectOneWinner(answers)
    expect((await emitted()).get('flushed')).toBe(1)
  })

  it('takes 100 different posts at once, and all that was acknowledged is in the topic', async () => {
    await test.system.startServices(['ingest', 'dedup'])
    const answers = await times(100, i => postEvent(test, body(`different-${i}`)))
    expect(new Set(answers.map(answer => answer.status))).toEqual(new Set([202]))
    const counts = await emitted()
    expect(answers.every((_, i) => counts.get(`different-${i}`) === 1)).toBe(true)
  })

  it('refuses another payload under the same key with 422', async () => {
    await test.system.start('ingest')
    const first = await postEvent(test, body('mismatch'))
    const second = await postEvent(test, body('mismatch', { n: 2 }))
    expect([first.status, second.status]).toEqual([202, 422])
    expect(second.body).toMatchObject({ code: 'payload_mismatch', original_delivery_id: first.body['delivery_id'] })
    expect(second.headers.get('content-type')).toContain('application/problem+json')
  })

  it.each(['ingest.after-edge-claim', 'ingest.after-publish', 'ingest.before-answer'])(
    'loses and doubles nothing when killed at %s: the retry wins or is named the original',
    async point => {
      await test.system.start('dedup')
      await test.system.start('ingest', { env: { WEIR_FAULT_POINT: point, WEIR_INGEST_LEASE_MS: '1000' } })
      await expect(postEvent(test, body(point))).rejects.toThrow('fetch failed')
      await test.system.supervisor.gone('ingest', 10_000)
      await test.system.start('ingest', { env: { WEIR_INGEST_LEASE_MS: '1000' } })
      let status = 0
      for (const deadline = Date.now() + 20_000; status !== 202 && Date.now() < deadline;) {
        const answer = await postEvent(test, body(point))
        if (answer.body['code'] === 'duplicate_event_key') break
        status = answer.status
        const retryAfter = Number(answer.headers.get('retry-after') ?? 0)
        if (status === 409) await new Promise(resolve => setTimeout(resolve, retryAfter * 1_000))
      }
      expect((await emitted()).get(point)).toBe(1)
    },
  )

  it('answers 503, never 2xx, without Postgres; providers are still taken', async () => {
    await test.system.startServices(['dedup'])
    await test.system.start('ingest', { env: { DATABASE_URL: 'postgres://x:y@127.0.0.1:1/none' } })
    const answer = await postEvent(test, body('no-postgres'))
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '2'])
    expect((await postShop(test, 'msg_no_pg', Buffer.from('{"type":"order.paid"}'))).status).toBe(202)
    const counts = await emitted()
    expect([counts.get('msg_no_pg'), counts.get('no-postgres')]).toEqual([1, undefined])
  })
})

describe('hostile requests', () => {
  const hostile: [string, Buffer][] = [
    ['nul', Buffer.from('{"type":"a\\u0000b","data":{}}')],
    ['raw-nul', Buffer.from('{"type":"x","data":"\u0000"}')],
    ['lone-surrogate', Buffer.from('{"type":"x","data":{"order_id":"\\ud800"}}')],
    ['invalid-utf8', Buffer.from([0x7b, 0xff, 0x7d])],
    ['big-number', Buffer.from('{"type":"x","data":{"n":9007199254740993}}')],
    ['deep', Buffer.from('['.repeat(100_000) + ']'.repeat(100_000))],
    ['empty', Buffer.alloc(0)],
  ]

  it('each ends delivered or parked with its bytes untouched, and later events flow', async () => {
    await test.system.startServices(['ingest', 'dedup'])
    for (const [name, bytes] of hostile) expect((await postShop(test, `msg_${name}`, bytes)).status).toBe(202)
    expect((await postShop(test, 'msg_later', Buffer.from('{"type":"x"}'))).status).toBe(202)
    const counts = await emitted()
    expect(counts.get('msg_later')).toBe(1)
    const seen = new Map<string, Buffer>()
    for (const record of await dumpLog(test.urls.WEIR_KAFKA_BROKERS, [test.topics.events, test.topics.parked])) {
      const decoded = await test.codec.decode('RawEvent', record.value)
      if (decoded.kind === 'ok') seen.set(decoded.value.eventId, decoded.value.data)
    }
    const missing = hostile.filter(([name, bytes]) => !(seen.get(`msg_${name}`)?.equals(bytes) ?? false))
    expect(missing.map(([name]) => name)).toEqual([])
  })

  it('refuses what is not signed, too large, unknown or cut off, each with its problem', async () => {
    await test.system.start('ingest')
    const base = test.system.instance('ingest').httpUrl
    const ask = async (path: string, bytes: Buffer, headers: Record<string, string> = {}) => {
      const response = await fetch(`${base}${path}`, { method: 'POST', body: new Uint8Array(bytes), headers })
      const problem = (await response.json()) as Record<string, unknown>
      return [response.status, problem['code'], response.headers.has('weir-correlation-id')]
    }
    expect(await ask('/v1/webhooks/shop', Buffer.from('{}'))).toEqual([401, 'bad_signature', true])
    expect(await ask('/v1/webhooks/nobody', Buffer.from('{}'))).toEqual([404, 'unknown_source', true])
    expect(await ask('/v1/events', Buffer.from('{}'))).toEqual([401, 'unauthorized', true])
    expect(await ask('/v1/webhooks/shop', Buffer.alloc(2 * 1_048_576))).toEqual([413, 'too_large', true])
    expect((await postEvent(test, '{"event_key": "cut')).status).toBe(400)
    await cutOff(base)
    expect((await postEvent(test, body('after-hostile'))).status).toBe(202)
  })
})

/** Promises 1,000 bytes, sends a few and hangs up. */
function cutOff(base: string): Promise<void> {
  const { hostname, port } = new URL(base)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => {
      socket.end('POST /v1/webhooks/shop HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{"type":')
    })
    socket.resume()
    socket.once('close', () => resolve())
    socket.once('error', reject)
  })
}
