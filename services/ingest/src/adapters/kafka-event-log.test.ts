import { topicNames, WeirError, type Broker, type OutRecord, type Publisher } from '@weir/core'
import type { Codec } from '@weir/kafka'
import type { RawEvent } from '@weir/schemas'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { toRawEvent } from '../domain/event-draft.ts'
import { headersOf, sourceOf } from '../domain/testing/sources.ts'
import { webhookEvent } from '../domain/webhook-event.ts'
import { prepareSource } from '../domain/webhook-source.ts'
import { openKafkaLogs, type KafkaLogs } from './kafka-event-log.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const codec: Codec = {
  encode: () => Buffer.from('framed'),
  decode: () => ({ kind: 'fault', code: 'empty', detail: '' }),
}
const alarms: string[] = []
const log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: (_fields: object, message: string) => void alarms.push(message),
  child: () => log,
}

function eventOf(): RawEvent {
  const draft = webhookEvent(
    prepareSource(sourceOf('github', 's')),
    Buffer.from('{}'),
    headersOf({ 'x-github-delivery': 'd' }),
  )
  return toRawEvent(draft, {
    tenant: 'acme',
    source: 'github',
    credentialId: 'first',
    deliveryId: 'delivery',
    receivedAtMs: 0,
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    tracestate: null,
  })
}

/** A broker as far as ingest uses one. */
function brokerOf(parts: { publish: Publisher['publish']; logId: () => string }): Broker {
  const unused = (): Promise<never> => Promise.reject(new Error('ingest does not use this'))
  return {
    admin: {
      describe: async topics =>
        await Promise.resolve(topics.map(topic => ({ topic, logId: parts.logId(), partitions: 6 }))),
      bounds: unused,
      offsetAt: unused,
      committed: unused,
    },
    openReader: unused,
    openPublisher: async () =>
      await Promise.resolve({ publish: parts.publish, close: async () => await Promise.resolve() }),
    openWriter: unused,
    join: unused,
    close: async () => await Promise.resolve(),
  }
}

async function open(broker: Broker): Promise<KafkaLogs> {
  return await openKafkaLogs({ broker, codec, topics: topicNames(), partitions: 6, log })
}

describe('weir.raw', () => {
  it('gets each event under its event key, in the partition of its ordering key, with the trace', async () => {
    const written: OutRecord[] = []
    const publish = async (records: readonly OutRecord[]) => {
      written.push(...records)
      return await Promise.resolve([])
    }
    const logs = await open(brokerOf({ publish, logId: () => 'log-1' }))
    const event = eventOf()
    await logs.events.append(event)
    expect(written).toMatchObject([{ topic: 'weir.raw', key: event.eventKey, value: Buffer.from('framed') }])
    expect(written[0]?.headers).toEqual([['traceparent', Buffer.from(event.traceparent ?? '')]])
    await logs.close()
  })

  it('that acknowledges nothing for 8 s is unavailable, and says so until it takes an event again', async () => {
    let hangs = true
    const publish = async () => (hangs ? await new Promise<never>(() => undefined) : await Promise.resolve([]))
    const logs = await open(brokerOf({ publish, logId: () => 'log-1' }))
    const appended = Promise.allSettled([logs.events.append(eventOf())])
    await vi.advanceTimersByTimeAsync(8_000)
    expect(await appended).toMatchObject([{ status: 'rejected', reason: { code: 'broker_unavailable' } }])
    expect(logs.fault()).toBe('Kafka takes no events')
    hangs = false
    await logs.events.append(eventOf())
    expect(logs.fault()).toBeNull()
    await logs.close()
  })

  it('that was created again is noticed, after a failure at once', async () => {
    let logId = 'log-1'
    const publish = async () => await Promise.reject(new WeirError('broker_unavailable', 'gone'))
    const logs = await open(brokerOf({ publish, logId: () => logId }))
    logId = 'log-2'
    await expect(logs.events.append(eventOf())).rejects.toThrow('gone')
    await vi.advanceTimersByTimeAsync(1)
    expect(logs.events.logId()).toBe('log-2')
    logId = 'log-3'
    await vi.advanceTimersByTimeAsync(5_000)
    expect(logs.events.logId()).toBe('log-3')
    expect(alarms).toEqual(['weir.raw is another log now', 'weir.raw is another log now'])
    await logs.close()
  })
})
