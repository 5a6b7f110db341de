import { eventKey, eventKeyText, partitionOf, sha256, uuidV5, type OutRecord } from '@weir/core'
import type { RawEvent } from '@weir/schemas'
import type { TestSystem } from './system.ts'

/** A valid RawEvent as the edge writes it; `n` makes its delivery id. */
export function rawEvent(eventId: string, n: number | string, change: Partial<RawEvent> = {}): RawEvent {
  const tenant = change.tenant ?? 'acme'
  const source = change.source ?? 'shop'
  const data = change.data ?? Buffer.from(JSON.stringify({ eventId }))
  const text = eventKeyText(tenant, source, eventId)
  return {
    tenant,
    source,
    eventKey: eventKey(tenant, source, eventId),
    eventKeyText: text,
    eventId,
    keyOrigin: 'header',
    deliveryId: uuidV5(['test delivery', eventId, String(n)]),
    orderingKey: text,
    type: 'order.paid',
    subject: null,
    object: null,
    version: null,
    run: null,
    rootEvent: null,
    cause: null,
    hops: 0,
    businessKey: null,
    secondKey: null,
    payloadDigest: sha256(data),
    contentType: 'application/json',
    data,
    headers: [],
    receivedAtMs: 1_700_000_000_000,
    eventTimeMs: null,
    eventTimeSigned: false,
    copies: 1,
    credentialId: 'main',
    attempt: 0,
    generation: 0,
    replayId: null,
    traceparent: null,
    tracestate: null,
    ...change,
  }
}

/** Appends raw events as the edge does: key = event key, partition = that of the ordering key. */
export async function publishRaw(test: TestSystem, events: readonly RawEvent[]): Promise<void> {
  const records = events.map((event): OutRecord => {
    const partition = partitionOf(event.orderingKey, test.system.options.partitions)
    const value = test.codec.encode('RawEvent', event)
    return { topic: test.topics.raw, partition, key: event.eventKey, value, headers: [] }
  })
  await publish(test, records)
}

export async function publish(test: TestSystem, records: readonly OutRecord[]): Promise<void> {
  const publisher = await test.broker.openPublisher()
  try {
    await publisher.publish(records)
  } finally {
    await publisher.close()
  }
}

/** Waits until a group has committed everything its input topic holds now. */
export async function untilRead(test: TestSystem, group: string, topic: string, withinMs = 60_000): Promise<void> {
  const tps = Array.from({ length: test.system.options.partitions }, (_, partition) => ({ topic, partition }))
  const ends = await Promise.all(tps.map(tp => test.broker.admin.bounds(tp)))
  const deadline = Date.now() + withinMs
  for (;;) {
    const committed = await test.broker.admin.committed(group, tps)
    const behind = tps.filter((tp, i) => {
      const position = committed.find(p => p.partition === tp.partition)?.nextOffset ?? 0
      return position < (ends[i]?.endOffset ?? 0)
    })
    if (behind.length === 0) return
    if (Date.now() > deadline) throw new Error(`${group} has not read ${topic} to its end within ${withinMs} ms`)
    await new Promise(resolve => setTimeout(resolve, 50))
  }
}
