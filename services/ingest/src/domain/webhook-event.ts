import { sha256, textFault } from '@weir/core'
import type { RawEventHeader } from '@weir/schemas'
import { canonicalJson } from './canonical-json.ts'
import { businessKeyOf, maxBytes, pathText, type EventDraft, type KeyOrigin } from './event-draft.ts'
import { headerBytes, headerText, singleHeader, type HeaderMap } from './header-map.ts'
import { parseJson, scalarAt, type JsonFault, type JsonView } from './json-body.ts'
import { sliceAt } from './json-scan.ts'
import { isJsonType, mediaType } from './media-type.ts'
import { eventTimeMs } from './event-time.ts'
import type { WebhookSource } from './webhook-source.ts'

/** Type of a verified delivery whose body or id cannot be read. */
export const unparsableType = 'unparsable'
/** Type of a delivery that names none. */
export const untypedType = 'untyped'
/** Kept beside the request's headers: why a delivery is `unparsable`. */
export const faultHeader = 'weir-unparsable'

/** Why a verified delivery has no readable body or id. */
export type DeliveryFault = JsonFault | 'missing_event_key'

interface FoundKey {
  readonly id: string
  readonly origin: KeyOrigin
}

/**
 * The event in a verified delivery. Never refuses: a provider would send again for days, and nothing that was verified may
 * vanish. What cannot be read becomes an event of type `unparsable`; without an id of its own it is known by its bytes.
 */
export function webhookEvent(source: WebhookSource, body: Buffer, headers: HeaderMap): EventDraft {
  const contentType = contentTypeOf(headers)
  const parsed = parseJson(jsonBytes(source, contentType, body))
  const view = parsed.kind === 'json' ? parsed.view : null
  const mustParse = source.alwaysJson || (contentType !== null && isJsonType(contentType))
  const found = findKey(source, view, headers)
  let fault: DeliveryFault | null = null
  if (parsed.kind === 'fault' && (mustParse || found === null)) fault = parsed.fault
  else if (found === null) fault = 'missing_event_key'

  const { id, origin } = found ?? { id: `body-${sha256(body).toString('hex')}`, origin: 'body_digest' as const }
  const time = pathText(view, source.paths.eventTime, maxBytes.text).text
  const timeMs = time === null ? null : eventTimeMs(time)
  return {
    eventId: id,
    keyOrigin: origin,
    type: fault === null ? typeOf(source, view, headers) : unparsableType,
    subject: pathText(view, source.paths.subject, maxBytes.text).text,
    object: pathText(view, source.paths.object, maxBytes.text).text,
    version: pathText(view, source.paths.version, maxBytes.version).text,
    run: pathText(view, source.paths.run, maxBytes.text).text,
    rootEvent: null,
    cause: null,
    hops: 0,
    businessKey: businessKeyOf(view, source.businessKey),
    idUnsigned: origin !== 'body_digest' && !source.keySigned,
    contentType,
    data: body,
    headers: keptHeaders(source, headers, fault),
    eventTimeMs: timeMs,
    eventTimeSigned: timeMs !== null,
  }
}

function contentTypeOf(headers: HeaderMap): string | null {
  const header = singleHeader(headers, 'content-type')
  const text = header.kind === 'one' ? headerText(header.value) : null
  return text === null || textFault(text, maxBytes.contentType) !== null ? null : text
}

/** The bytes that hold the JSON: the body, or one field of a form. */
function jsonBytes(source: WebhookSource, contentType: string | null, body: Buffer): Buffer {
  if (source.formField === null || contentType === null) return body
  if (mediaType(contentType) !== 'application/x-www-form-urlencoded') return body
  const field = new URLSearchParams(body.toString('latin1')).get(source.formField)
  return field === null ? body : Buffer.from(field, 'utf8')
}

function findKey(source: WebhookSource, view: JsonView | null, headers: HeaderMap): FoundKey | null {
  const { key } = source
  switch (key.kind) {
    case 'header': {
      // Senders use one of the names; the signature check has refused a mixture where the id is signed.
      const present = key.names.filter(name => headers[name] !== undefined)
      const header = singleHeader(headers, present[0] ?? '')
      const id = present.length === 1 && header.kind === 'one' ? headerText(header.value) : null
      return usableId(id, key.origin)
    }
    case 'body': {
      const scalar = view === null ? null : scalarAt(view, key.tokens)
      return usableId(scalar?.kind === 'text' ? scalar.text : null, key.origin)
    }
    case 'fingerprint':
      return view === null ? null : fingerprint(view, key.paths)
  }
}

function usableId(id: string | null, origin: KeyOrigin): FoundKey | null {
  return id === null || textFault(id, maxBytes.eventId) !== null ? null : { id, origin }
}

/** SHA-256 over the canonical form of the named values. A path that is absent makes no key: unrelated events would share it. */
function fingerprint(view: JsonView, paths: ReadonlyMap<string, readonly string[]>): FoundKey | null {
  const parts: string[] = []
  for (const [pointer, tokens] of [...paths].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const slice = sliceAt(view.bytes, view.slice, tokens)
    if (slice === null) return null
    parts.push(`${JSON.stringify(pointer)}:${canonicalJson(view.bytes, slice)}`)
  }
  return { id: `fp-${sha256(`{${parts.join(',')}}`).toString('hex')}`, origin: 'fingerprint' }
}

function typeOf(source: WebhookSource, view: JsonView | null, headers: HeaderMap): string {
  let type: string | null = null
  if (source.typeHeader !== null) {
    const header = singleHeader(headers, source.typeHeader)
    const text = header.kind === 'one' ? headerText(header.value) : null
    if (text !== null && textFault(text, maxBytes.type) === null) type = text
  } else {
    type = pathText(view, source.typePath, maxBytes.type).text
  }
  if (type === null) return untypedType
  const suffix = pathText(view, source.typeSuffix, maxBytes.type - Buffer.byteLength(type) - 1).text
  return suffix === null ? type : `${type}.${suffix}`
}

function keptHeaders(source: WebhookSource, headers: HeaderMap, fault: DeliveryFault | null): RawEventHeader[] {
  const kept: RawEventHeader[] = []
  for (const name of source.keptHeaders) {
    for (const value of headers[name] ?? []) kept.push({ name, value: headerBytes(value) })
  }
  if (fault !== null) kept.push({ name: faultHeader, value: Buffer.from(fault) })
  return kept
}
