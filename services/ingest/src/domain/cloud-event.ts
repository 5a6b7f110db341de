import {
  jsonFaultText,
  maxBatchItems,
  refusal,
  textRefusal,
  type ApiClient,
  type ClientRequest,
  type ReadEvent,
  type Refusal,
} from './client-event.ts'
import { completeDraft } from './client-draft.ts'
import { maxBytes } from './event-draft.ts'
import { decodeUtf8, singleHeader, type HeaderMap } from './header-map.ts'
import { parseJson, scalarAt, type JsonView } from './json-body.ts'
import { isRecord } from './json-pointer.ts'
import { elementsOf, isArray, memberOf } from './json-scan.ts'
import { decodeBase64 } from './mac.ts'
import { isJsonType } from './media-type.ts'

/** Most attributes one event may carry, and their longest value in bytes. */
const maxAttributes = 64
const maxAttributeBytes = 2048

type Attributes = ReadonlyMap<string, string>
interface EventData {
  readonly contentType: string | null
  readonly bytes: Buffer
  readonly view: JsonView | null
}

/**
 * Event id of a CloudEvent: producers make `source` + `id` unique together. A URI reference holds no space, so the joined
 * text belongs to one pair only.
 */
export function cloudEventId(source: string, id: string): string {
  return `${source} ${id}`
}

/** Binary mode: attributes in `ce-` headers, the body is the data. */
export function readBinary(client: ApiClient, body: Buffer, contentType: string | null, headers: HeaderMap): ReadEvent {
  const attributes = new Map<string, string>()
  for (const name of Object.keys(headers)) {
    if (!name.startsWith('ce-')) continue
    const header = singleHeader(headers, name)
    if (header.kind !== 'one') return refusal('invalid_value', 'A ce- header stands more than once')
    const text = percentDecoded(header.value)
    if (text === null) return refusal('invalid_value', 'A ce- header is not percent-encoded UTF-8')
    attributes.set(name.slice(3), text)
  }
  const data = readData(body, contentType)
  return data.kind === 'refused' ? data : fromAttributes(client, attributes, data)
}

/** Structured mode: one JSON object with attributes and data. */
export function readStructured(client: ApiClient, view: JsonView): ReadEvent {
  const { value } = view
  if (!isRecord(value)) return refusal('malformed', 'A CloudEvent in JSON must be an object')
  const attributes = new Map<string, string>()
  for (const name of Object.keys(value)) {
    if (name === 'data' || name === 'data_base64') continue
    const scalar = scalarAt(view, [name])
    if (scalar.kind === 'not_scalar')
      return refusal('invalid_value', 'A CloudEvents attribute is an object or an array')
    if (scalar.kind === 'text') attributes.set(name, scalar.text)
  }
  const data = structuredData(view, value, attributes.get('datacontenttype') ?? null)
  return data.kind === 'refused' ? data : fromAttributes(client, attributes, data)
}

/** Batch mode: an array of structured events. Events with the same id are all refused: which one is meant is unknown. */
export function readBatch(client: ApiClient, view: JsonView): ClientRequest {
  const { value, bytes, slice } = view
  if (!Array.isArray(value) || !isArray(bytes, slice))
    return refusal('malformed', 'A CloudEvents batch must be an array')
  if (value.length === 0) return refusal('malformed', 'The batch is empty')
  if (value.length > maxBatchItems) return refusal('invalid_value', `A batch holds at most ${maxBatchItems} events`)
  const items = elementsOf(bytes, slice).map((element, i) =>
    readStructured(client, { bytes, slice: element, value: value[i] as unknown }),
  )
  const times = new Map<string, number>()
  for (const item of items) {
    if (item.kind === 'event') times.set(item.draft.eventId, (times.get(item.draft.eventId) ?? 0) + 1)
  }
  const repeated = (item: ReadEvent): boolean => item.kind === 'event' && (times.get(item.draft.eventId) ?? 0) > 1
  return {
    kind: 'batch',
    items: items.map(item =>
      repeated(item) ? refusal('invalid_value', 'This source and id stand more than once in the batch') : item,
    ),
  }
}

function fromAttributes(client: ApiClient, attributes: Attributes, data: EventData): ReadEvent {
  const fault = attributesFault(attributes)
  if (fault !== null) return fault
  const read = (name: string): string | null => attributes.get(name) ?? null
  const [source, id, type] = [read('source') ?? '', read('id') ?? '', read('type') ?? '']
  if (read('tenantid') !== null && read('tenantid') !== client.tenant) {
    return refusal('forbidden', '`tenantid` is not the tenant of this key')
  }
  const eventId = cloudEventId(source, id)
  const tooLong = textRefusal('source and id', eventId, maxBytes.eventId)
  if (tooLong !== null) return tooLong
  return completeDraft(client, {
    eventId,
    keyOrigin: 'cloudevents',
    stated: {
      type,
      subject: read('subject'),
      object: read('object') ?? read('partitionkey'),
      version: read('objectversion'),
      run: read('runid'),
      cause: read('causationid'),
      rootEvent: read('rooteventid'),
      hops: read('hops'),
      time: read('time'),
    },
    contentType: data.contentType,
    data: data.bytes,
    view: data.view,
    headers: [...attributes].map(([name, text]) => ({ name: `ce-${name}`, value: Buffer.from(text, 'utf8') })),
  })
}

/** The rules of the CloudEvents specification, and that every attribute may be stored. */
function attributesFault(attributes: Attributes): Refusal | null {
  if (attributes.get('specversion') !== '1.0') return refusal('invalid_value', '`specversion` must be "1.0"')
  if (!attributes.get('id')) return refusal('missing_event_key', 'The CloudEvents attribute `id` is missing')
  for (const name of ['source', 'type']) {
    if (!attributes.get(name)) return refusal('invalid_value', `The CloudEvents attribute \`${name}\` is missing`)
  }
  if (attributes.get('source')?.includes(' ') === true)
    return refusal('invalid_value', '`source` must be a URI reference')
  if (attributes.size > maxAttributes)
    return refusal('invalid_value', `An event has at most ${maxAttributes} attributes`)
  for (const [name, text] of attributes) {
    if (!/^[a-z0-9]{1,64}$/.test(name)) {
      return refusal('invalid_value', 'Names of CloudEvents attributes are lower-case letters and digits')
    }
    const fault = textRefusal(name, text, maxAttributeBytes)
    if (fault !== null) return fault
  }
  return null
}

type ReadData = ({ readonly kind: 'data' } & EventData) | Refusal

/** Data that stands by itself. What says it is JSON must be JSON. */
function readData(bytes: Buffer, contentType: string | null): ReadData {
  const fault = contentType === null ? null : textRefusal('datacontenttype', contentType, maxBytes.contentType)
  if (fault !== null) return fault
  if (bytes.length === 0 || contentType === null || !isJsonType(contentType)) {
    return { kind: 'data', contentType, bytes, view: null }
  }
  const parsed = parseJson(bytes)
  return parsed.kind === 'json'
    ? { kind: 'data', contentType, bytes, view: parsed.view }
    : refusal('malformed', jsonFaultText[parsed.fault])
}

/** Data inside a structured event: the exact bytes of a JSON value, the text of other content types, or decoded base64. */
function structuredData(view: JsonView, event: Record<string, unknown>, contentType: string | null): ReadData {
  const base64 = event['data_base64']
  if (base64 !== undefined && base64 !== null) {
    if (event['data'] !== undefined) return refusal('invalid_value', 'An event has `data` or `data_base64`, not both')
    const bytes = typeof base64 === 'string' ? decodeBase64(base64) : null
    return bytes === null ? refusal('invalid_value', '`data_base64` is not base64') : readData(bytes, contentType)
  }
  const slice = memberOf(view.bytes, view.slice, 'data')
  if (slice === null) return { kind: 'data', contentType, bytes: Buffer.alloc(0), view: null }
  const data = event['data']
  if (contentType !== null && !isJsonType(contentType) && typeof data === 'string') {
    return data.isWellFormed()
      ? readData(Buffer.from(data, 'utf8'), contentType)
      : refusal('invalid_value', '`data` contains half of a surrogate pair')
  }
  return {
    kind: 'data',
    contentType: contentType ?? 'application/json',
    bytes: view.bytes.subarray(slice.start, slice.end),
    view: { bytes: view.bytes, slice, value: data },
  }
}

/** Undoes the percent-encoding of header values; `null` when it or the UTF-8 is broken. */
function percentDecoded(value: string): string | null {
  if (/%(?![0-9A-Fa-f]{2})/.test(value)) return null
  const bytes = value.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return decodeUtf8(Buffer.from(bytes, 'latin1'))
}
