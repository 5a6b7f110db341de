import { refusal, textRefusal, type ApiClient, type ReadEvent, type Refusal } from './client-event.ts'
import { completeDraft, type StatedFields } from './client-draft.ts'
import { maxBytes } from './event-draft.ts'
import { headerText, singleHeader, type HeaderMap } from './header-map.ts'
import { scalarAt, type JsonView } from './json-body.ts'
import { isRecord } from './json-pointer.ts'
import { memberOf } from './json-scan.ts'

const known = new Set([
  'event_key',
  'type',
  'subject',
  'object',
  'version',
  'run',
  'cause',
  'root_event',
  'hops',
  'time',
  'data',
])

/** `{ event_key, type, subject?, object?, version?, run?, cause?, root_event?, hops?, time?, data? }`. */
export function readPlain(client: ApiClient, view: JsonView, headers: HeaderMap): ReadEvent {
  const { value } = view
  if (!isRecord(value)) return refusal('malformed', 'The body must be a JSON object')
  const stranger = Object.keys(value).find(name => !known.has(name))
  if (stranger !== undefined) {
    // The name is not repeated in the answer: it may hold anything.
    return refusal('invalid_value', `The body has a member Weir does not know; known are: ${[...known].join(', ')}`)
  }
  const fields: Record<string, string | null> = {}
  for (const name of known) {
    if (name === 'data') continue
    const scalar = scalarAt(view, [name])
    if (scalar.kind === 'not_scalar') return refusal('invalid_value', `\`${name}\` must be a text or a number`)
    fields[name] = scalar.kind === 'text' ? scalar.text : null
  }
  const key = keyOf(fields['event_key'] ?? null, headers)
  if (key.kind === 'refused') return key
  if (fields['type'] == null) return refusal('invalid_value', '`type` is missing')

  const slice = memberOf(view.bytes, view.slice, 'data')
  const stated: StatedFields = {
    type: fields['type'],
    subject: fields['subject'] ?? null,
    object: fields['object'] ?? null,
    version: fields['version'] ?? null,
    run: fields['run'] ?? null,
    cause: fields['cause'] ?? null,
    rootEvent: fields['root_event'] ?? null,
    hops: fields['hops'] ?? null,
    time: fields['time'] ?? null,
  }
  return completeDraft(client, {
    eventId: key.id,
    keyOrigin: key.origin,
    stated,
    contentType: slice === null ? null : 'application/json',
    data: slice === null ? Buffer.alloc(0) : view.bytes.subarray(slice.start, slice.end),
    view: slice === null ? null : { bytes: view.bytes, slice, value: value['data'] },
    headers: [],
  })
}

type FoundKey = { readonly kind: 'key'; readonly id: string; readonly origin: 'header' | 'body_path' }

/** `Idempotency-Key` or `X-Event-Key`, else `event_key`. Two that differ are refused: which one counts would be a guess. */
function keyOf(bodyKey: string | null, headers: HeaderMap): FoundKey | Refusal {
  const ids: { readonly id: string; readonly origin: 'header' | 'body_path' }[] = []
  for (const name of ['idempotency-key', 'x-event-key']) {
    const header = singleHeader(headers, name)
    if (header.kind === 'many') return refusal('invalid_value', `\`${name}\` stands more than once`)
    if (header.kind === 'absent') continue
    const text = headerText(header.value)
    if (text === null) return refusal('invalid_value', `\`${name}\` is not UTF-8`)
    ids.push({ id: name === 'idempotency-key' ? unquoted(text) : text, origin: 'header' })
  }
  if (bodyKey !== null) ids.push({ id: bodyKey, origin: 'body_path' })
  const first = ids[0]
  if (first === undefined || first.id === '') {
    return refusal(
      'missing_event_key',
      'Send the event key as `event_key`, or in the header Idempotency-Key or X-Event-Key',
    )
  }
  if (ids.some(({ id }) => id !== first.id)) {
    return refusal('invalid_value', 'The event keys in headers and body differ; send one')
  }
  return textRefusal('event_key', first.id, maxBytes.eventId) ?? { kind: 'key', ...first }
}

/** The value of a structured-field string; other spellings stay as they are. */
function unquoted(text: string): string {
  return /^"(?:[^"\\]|\\["\\])*"$/.test(text) ? text.slice(1, -1).replace(/\\(["\\])/g, '$1') : text
}
