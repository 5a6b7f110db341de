import type { Header } from '@weir/core'
import type { RawEvent } from '@weir/schemas'

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
  const parts = civilTime(ms)
  if (parts === null) return null
  const two = (value: number): string => String(value).padStart(2, '0')
  const date = `${String(parts.year).padStart(4, '0')}-${two(parts.month)}-${two(parts.day)}`
  const time = `${two(parts.hour)}:${two(parts.minute)}:${two(parts.second)}`
  return `${date}T${time}.${String(parts.millisecond).padStart(3, '0')}Z`
}

interface CivilTime {
  readonly year: number
  readonly month: number
  readonly day: number
  readonly hour: number
  readonly minute: number
  readonly second: number
  readonly millisecond: number
}

const dayMs = 86_400_000

/** Proleptic Gregorian calendar; four-digit years only. */
function civilTime(ms: number): CivilTime | null {
  if (!Number.isSafeInteger(ms)) return null
  const days = Math.floor(ms / dayMs) + 719_468
  const era = Math.floor(days / 146_097)
  const dayOfEra = days - era * 146_097
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1_460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  )
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100))
  const shifted = Math.floor((5 * dayOfYear + 2) / 153)
  const month = shifted < 10 ? shifted + 3 : shifted - 9
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
  if (year < 0 || year > 9_999) return null
  const rest = ms - Math.floor(ms / dayMs) * dayMs
  return {
    year,
    month,
    day: dayOfYear - Math.floor((153 * shifted + 2) / 5) + 1,
    hour: Math.floor(rest / 3_600_000),
    minute: Math.floor(rest / 60_000) % 60,
    second: Math.floor(rest / 1_000) % 60,
    millisecond: rest % 1_000,
  }
}
