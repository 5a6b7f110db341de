import { rfc3339Ms } from '@weir/core'
import type { RawEventHeader } from '@weir/schemas'
import { refusal, textRefusal, type ApiClient, type ReadEvent, type Refusal } from './client-event.ts'
import { businessKeyOf, maxBytes, pathText, type KeyOrigin } from './event-draft.ts'
import type { JsonView } from './json-body.ts'

/** What a client says of its event beside the data; `null` where it says nothing. */
export interface StatedFields {
  readonly type: string
  readonly subject: string | null
  readonly object: string | null
  readonly version: string | null
  readonly run: string | null
  readonly cause: string | null
  readonly rootEvent: string | null
  readonly hops: string | null
  /** RFC 3339. */
  readonly time: string | null
}

const maxHops = 1_000_000

const limits = {
  type: maxBytes.type,
  subject: maxBytes.text,
  object: maxBytes.text,
  version: maxBytes.version,
  run: maxBytes.text,
  cause: maxBytes.text,
  rootEvent: maxBytes.text,
} as const

type LimitedField = keyof typeof limits

/** Checks what was stated and fills the rest from the client's configured paths. */
export function completeDraft(
  client: ApiClient,
  event: {
    readonly eventId: string
    readonly keyOrigin: KeyOrigin
    readonly stated: StatedFields
    readonly contentType: string | null
    readonly data: Buffer
    /** The data as JSON, if it is. */
    readonly view: JsonView | null
    readonly headers: readonly RawEventHeader[]
  },
): ReadEvent {
  const { stated, view } = event
  const fields: Partial<Record<LimitedField, string | null>> = {}
  for (const field of Object.keys(limits) as LimitedField[]) {
    const found = fieldText(field, stated, client, view)
    if (found.kind === 'refused') return found
    fields[field] = found.text
  }
  const hops = hopsOf(stated.hops)
  if (hops === null) return refusal('invalid_value', `\`hops\` must be a whole number from 0 to ${maxHops}`)
  const time = stated.time ?? pathText(view, client.paths.eventTime, maxBytes.text).text
  const eventTimeMs = time === null ? null : rfc3339Ms(time)
  if (stated.time !== null && eventTimeMs === null) return refusal('invalid_value', '`time` must be an RFC 3339 time')
  return {
    kind: 'event',
    draft: {
      eventId: event.eventId,
      keyOrigin: event.keyOrigin,
      type: stated.type,
      subject: fields.subject ?? null,
      object: fields.object ?? null,
      version: fields.version ?? null,
      run: fields.run ?? null,
      rootEvent: fields.rootEvent ?? null,
      cause: fields.cause ?? null,
      hops,
      businessKey: businessKeyOf(view, client.businessKey),
      idUnsigned: false,
      contentType: event.contentType,
      data: event.data,
      headers: event.headers,
      eventTimeMs,
      // An API key says who sent it; no signature covers the time.
      eventTimeSigned: false,
    },
  }
}

function fieldText(
  field: LimitedField,
  stated: StatedFields,
  client: ApiClient,
  view: JsonView | null,
): { readonly kind: 'text'; readonly text: string | null } | Refusal {
  const text = stated[field]
  if (text !== null) return textRefusal(field, text, limits[field]) ?? { kind: 'text', text }
  if (field === 'type' || field === 'cause' || field === 'rootEvent') return { kind: 'text', text: null }
  const found = pathText(view, client.paths[field], limits[field])
  if (found.fault !== null) {
    return refusal('invalid_value', `The value at the configured path for \`${field}\` may not be stored`)
  }
  return { kind: 'text', text: found.text }
}

function hopsOf(text: string | null): number | null {
  if (text === null) return 0
  if (!/^\d{1,7}$/.test(text)) return null
  const hops = Number(text)
  return hops <= maxHops ? hops : null
}
