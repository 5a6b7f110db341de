import { jsonFaultText, refusal, type ApiClient, type ClientRequest, type Refusal } from './client-event.ts'
import { readBatch, readBinary, readStructured } from './cloud-event.ts'
import { headerText, singleHeader, type HeaderMap } from './header-map.ts'
import { parseJson, type JsonView } from './json-body.ts'
import { isJsonType, mediaType } from './media-type.ts'
import { readPlain } from './plain-event.ts'

/** Reads what an API client sent: plain JSON, or CloudEvents 1.0 in binary, structured or batch mode. Never throws. */
export function readClientRequest(client: ApiClient, body: Buffer, headers: HeaderMap): ClientRequest {
  const header = singleHeader(headers, 'content-type')
  if (header.kind === 'many') return refusal('malformed', 'Content-Type stands more than once')
  const contentType = header.kind === 'one' ? headerText(header.value) : null
  const encoding = singleHeader(headers, 'content-encoding')
  if (encoding.kind === 'many' || (encoding.kind === 'one' && encoding.value.toLowerCase() !== 'identity')) {
    return refusal('unsupported_media_type', 'Content-Encoding is not supported: send the body uncompressed')
  }
  const type = contentType === null ? '' : mediaType(contentType)
  if (type === 'application/cloudevents+json') {
    return withJson(body, view => ({ kind: 'single', item: readStructured(client, view) }))
  }
  if (type === 'application/cloudevents-batch+json') return withJson(body, view => readBatch(client, view))
  if (type.startsWith('application/cloudevents')) return unsupported(type)
  if (headers['ce-specversion'] !== undefined) {
    return { kind: 'single', item: readBinary(client, body, contentType, headers) }
  }
  if (contentType === null || !isJsonType(contentType)) return unsupported(type)
  return withJson(body, view => ({ kind: 'single', item: readPlain(client, view, headers) }))
}

function unsupported(type: string): Refusal {
  const given = type === '' ? 'No Content-Type was sent' : 'This Content-Type is not supported'
  return refusal(
    'unsupported_media_type',
    `${given}: use application/json, application/cloudevents+json, application/cloudevents-batch+json or CloudEvents binary mode`,
  )
}

function withJson(body: Buffer, read: (view: JsonView) => ClientRequest): ClientRequest {
  const parsed = parseJson(body)
  return parsed.kind === 'json' ? read(parsed.view) : refusal('malformed', jsonFaultText[parsed.fault])
}
