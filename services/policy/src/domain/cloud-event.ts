import type { Header } from '@weir/core'
import type { RawEvent } from '@weir/schemas'
import { civilTime } from './calendar.ts'

/** CloudEvents 1.0 in Kafka binary mode: the value is the payload as received, the attributes are headers. */
export function cloudEventHeaders(
  event: RawEvent,
  delivery: { readonly decisionId: string; readonly attempt: number },
): Header[] {
  const attributes: Record<string, string | null> = {
    ce_specversion: '1.0',
    ce_id: event.eventKey.toString('hex'),
    ce_source: event.source,
    ce_type: event.type,
    ce_time: event.eventTimeMs === null ? null : isoTime(event.eventTimeMs),
    ce_subject: event.subject,
    'content-type': event.contentType,
    ce_tenantid: event.tenant,
    ce_decisionid: delivery.decisionId,
    ce_attempt: String(delivery.attempt),
    ce_runid: event.run,
    ce_rooteventid: event.rootEvent,
    ce_causationid: event.cause,
    ce_hops: String(event.hops),
    ce_partitionkey: event.orderingKey,
    traceparent: event.traceparent,
  }
  return Object.entries(attributes).flatMap(([name, text]): Header[] =>
    text === null || text === '' ? [] : [[name, Buffer.from(text, 'utf8')]],
  )
}

/** RFC 3339 in UTC; null for a time no calendar has. */
export function isoTime(ms: number): string | null {
  if (!Number.isSafeInteger(ms)) return null
  const parts = civilTime(ms)
  if (parts.year < 0 || parts.year > 9_999) return null
  const two = (value: number): string => String(value).padStart(2, '0')
  const date = `${String(parts.year).padStart(4, '0')}-${two(parts.month)}-${two(parts.day)}`
  const time = `${two(parts.hour)}:${two(parts.minute)}:${two(parts.second)}`
  return `${date}T${time}.${String(parts.millisecond).padStart(3, '0')}Z`
}
