import { eventKey, eventKeyText, sha256, uuidV5 } from '@weir/core'
import type { RawEvent } from '@weir/schemas'

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
