import { CloudEvent, HTTP } from 'cloudevents'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { clientLookup } from './api-key.ts'
import { readClientRequest } from './client-request.ts'
import { edgeDigest, type EventDraft } from './event-draft.ts'
import type { HeaderMap } from './header-map.ts'
import { clientOf, headersOf, noPaths } from './testing/sources.ts'
import { sha256 } from '@weir/core'

const json = { 'content-type': 'application/json' }
const structured = { 'content-type': 'application/cloudevents+json; charset=utf-8' }
const batch = { 'content-type': 'application/cloudevents-batch+json' }

function post(body: string | Buffer, headers: Record<string, string> = json, client = clientOf()) {
  return readClientRequest(client, Buffer.from(body), headersOf(headers))
}

function draftOf(body: string | Buffer, headers: Record<string, string> = json, client = clientOf()): EventDraft {
  const request = post(body, headers, client)
  if (request.kind === 'single' && request.item.kind === 'event') return request.item.draft
  throw new Error(JSON.stringify(request))
}

function codeOf(body: string | Buffer, headers: Record<string, string> = json): string {
  const request = post(body, headers)
  if (request.kind === 'refused') return request.code
  const item = request.kind === 'single' ? request.item : request.items[0]
  return item?.kind === 'refused' ? item.code : 'event'
}

describe('plain JSON', () => {
  it('becomes an event whose data are the bytes as sent', () => {
    const data = '{ "id":9007199254740993, "b":1.0,\n "a":"\\u00e9" }'
    const draft = draftOf(
      `{"event_key":"k1","type":"order.placed","subject":"acct","object":7,"version":"3","run":"r","cause":"c","root_event":"e","hops":2,"data": ${data} }`,
    )
    expect(draft.data.toString()).toBe(data)
    expect(draft).toMatchObject({
      eventId: 'k1',
      keyOrigin: 'body_path',
      type: 'order.placed',
      subject: 'acct',
      object: '7',
      version: '3',
      run: 'r',
      cause: 'c',
      rootEvent: 'e',
      hops: 2,
      contentType: 'application/json',
    })
  })

  it('takes the key from a header, quoted or not, and refuses two that differ', () => {
    const body = '{"type":"t"}'
    expect(draftOf(body, { ...json, 'Idempotency-Key': '"k\\"1"' })).toMatchObject({
      eventId: 'k"1',
      keyOrigin: 'header',
    })
    expect(draftOf(body, { ...json, 'X-Event-Key': 'k2' }).eventId).toBe('k2')
    expect(draftOf('{"event_key":"k","type":"t"}', { ...json, 'x-event-key': 'k' }).eventId).toBe('k')
    expect(codeOf('{"event_key":"a","type":"t"}', { ...json, 'x-event-key': 'b' })).toBe('invalid_value')
  })

  it('fills what is not stated from the client’s paths into the data', () => {
    const client = clientOf({
      paths: { ...noPaths, subject: '/customer', object: '/order/id', version: '/v' },
      businessKey: { space: 'orders', paths: ['/order/id'] },
    })
    const body =
      '{"event_key":"k","type":"t","subject":"mine","data":{"customer":"c","order":{"id":9007199254740993},"v":5}}'
    expect(draftOf(body, json, client)).toMatchObject({
      subject: 'mine',
      object: '9007199254740993',
      version: '5',
      businessKey: { space: 'orders', value: '9007199254740993' },
    })
  })

  it.each([
    ['malformed', ''],
    ['malformed', '{"event_key":'],
    ['malformed', '[]'],
    ['malformed', '['.repeat(100_000) + ']'.repeat(100_000)],
    ['malformed', Buffer.from([0x7b, 0xff, 0x7d])],
    ['missing_event_key', '{"type":"t"}'],
    ['missing_event_key', '{"event_key":"","type":"t"}'],
    ['invalid_value', '{"event_key":"k"}'],
    ['invalid_value', '{"event_key":"k","type":""}'],
    ['invalid_value', '{"event_key":"a\\u0000","type":"t"}'],
    ['invalid_value', '{"event_key":"\\ud800","type":"t"}'],
    ['invalid_value', '{"event_key":{},"type":"t"}'],
    ['invalid_value', `{"event_key":"${'k'.repeat(1025)}","type":"t"}`],
    ['invalid_value', '{"event_key":"k","type":"t","hops":-1}'],
    ['invalid_value', '{"event_key":"k","type":"t","hops":1.5}'],
    ['invalid_value', '{"event_key":"k","type":"t","subject":"a\\nb"}'],
    ['invalid_value', '{"event_key":"k","type":"t","time":"yesterday"}'],
    ['invalid_value', '{"event_key":"k","type":"t","payload":{}}'],
  ])('is refused with %s: %s', (code, body) => {
    expect(codeOf(body)).toBe(code)
  })

  it('is refused in other media types and encodings', () => {
    const body = '{"event_key":"k","type":"t"}'
    expect(codeOf(body, {})).toBe('unsupported_media_type')
    expect(codeOf(body, { 'content-type': 'application/x-www-form-urlencoded' })).toBe('unsupported_media_type')
    expect(codeOf(body, { 'content-type': 'application/cloudevents+avro' })).toBe('unsupported_media_type')
    expect(codeOf(body, { ...json, 'content-encoding': 'gzip' })).toBe('unsupported_media_type')
  })

  it('may have no data, which is not a null value', () => {
    expect(draftOf('{"event_key":"k","type":"t"}')).toMatchObject({ data: Buffer.alloc(0), contentType: null })
    expect(draftOf('{"event_key":"k","type":"t","data":null}').data.toString()).toBe('null')
  })

  it('is never thrown over, whatever the bytes', () => {
    const anyHeaders = fc.constantFrom(json, structured, batch, { ...json, 'ce-specversion': '1.0' })
    const anyBody = fc.oneof(
      fc.uint8Array({ maxLength: 60 }).map(bytes => Buffer.from(bytes)),
      fc.json().map(text => Buffer.from(text)),
      fc.array(fc.json(), { maxLength: 3 }).map(parts => Buffer.from(`[${parts.join(',')}]`)),
    )
    fc.assert(
      fc.property(anyBody, anyHeaders, (body, headers) => {
        expect(['single', 'batch', 'refused']).toContain(post(body, headers).kind)
      }),
      { numRuns: 500 },
    )
  })
})

describe('CloudEvents', () => {
  const event = new CloudEvent({
    id: 'A-1',
    source: '/orders',
    type: 'order.placed',
    subject: 'acct 7',
    time: '2026-01-02T03:04:05.000Z',
    runid: 'r-1',
    hops: 3,
    rooteventid: 'root',
    causationid: 'cause',
    partitionkey: 'o-1',
    data: { n: 1 },
  })
  const expected = {
    eventId: '/orders A-1',
    keyOrigin: 'cloudevents',
    type: 'order.placed',
    subject: 'acct 7',
    object: 'o-1',
    run: 'r-1',
    hops: 3,
    rootEvent: 'root',
    cause: 'cause',
    eventTimeMs: Date.parse('2026-01-02T03:04:05Z'),
  }

  it('are read as the SDK writes them, in binary and structured mode', () => {
    for (const message of [HTTP.binary(event), HTTP.structured(event)]) {
      const draft = draftOf(String(message.body), message.headers as Record<string, string>)
      expect(draft).toMatchObject(expected)
      expect(draft.data.toString()).toBe('{"n":1}')
      expect(draft.headers).toContainEqual({ name: 'ce-rooteventid', value: Buffer.from('root') })
    }
  })

  it('keep the bytes of their data in structured mode', () => {
    const data = '{ "n" : 9007199254740993 }'
    const body = `{"specversion":"1.0","id":"1","source":"s","type":"t","data":${data}}`
    expect(draftOf(body, structured).data.toString()).toBe(data)
    const text = '{"specversion":"1.0","id":"1","source":"s","type":"t","datacontenttype":"text/xml","data":"<a>é</a>"}'
    expect(draftOf(text, structured)).toMatchObject({ data: Buffer.from('<a>é</a>'), contentType: 'text/xml' })
    const binary =
      '{"specversion":"1.0","id":"1","source":"s","type":"t","datacontenttype":"image/png","data_base64":"/w=="}'
    expect(draftOf(binary, structured).data).toEqual(Buffer.from([0xff]))
  })

  it('percent-decode header values', () => {
    const headers = {
      'ce-specversion': '1.0',
      'ce-id': '1',
      'ce-source': 's',
      'ce-type': 't',
      'content-type': 'text/plain',
    }
    expect(draftOf('x', { ...headers, 'ce-subject': 'Euro%20%E2%82%AC' }).subject).toBe('Euro €')
    expect(codeOf('x', { ...headers, 'ce-subject': '%zz' })).toBe('invalid_value')
    expect(codeOf('x', { ...headers, 'ce-subject': '%ff' })).toBe('invalid_value')
  })

  it.each([
    ['invalid_value', { specversion: '0.3' }],
    ['missing_event_key', { id: '' }],
    ['missing_event_key', { id: undefined }],
    ['invalid_value', { source: undefined }],
    ['invalid_value', { source: 'a b' }],
    ['invalid_value', { type: 7, type2: {} }],
    ['invalid_value', { Extension: 'x' }],
    ['invalid_value', { time: 'now' }],
    ['invalid_value', { ext: 'a\u0000' }],
    ['invalid_value', { data: 1, data_base64: 'AA==' }],
    ['invalid_value', { data_base64: 'A' }],
    ['forbidden', { tenantid: 'globex' }],
  ])('are refused with %s: %j', (code, change) => {
    const body = JSON.stringify({ specversion: '1.0', id: '1', source: 's', type: 't', ...change })
    expect(codeOf(body, structured)).toBe(code)
  })

  it('in a batch are read one by one, and all of an id that stands twice are refused', () => {
    const one = (id: string, n: string): string =>
      `{"specversion":"1.0","id":"${id}","source":"s","type":"t","data":${n}}`
    const request = post(`[ ${one('1', '9007199254740993')}, ${one('2', '2')},${one('1', '3')} , {"id":1}]`, batch)
    if (request.kind !== 'batch') throw new Error('not a batch')
    expect(request.items.map(item => (item.kind === 'refused' ? item.code : item.draft.data.toString()))).toEqual([
      'invalid_value',
      '2',
      'invalid_value',
      'invalid_value',
    ])
    expect(codeOf('[]', batch)).toBe('malformed')
    expect(codeOf(`[${'{},'.repeat(100)}{}]`, batch)).toBe('invalid_value')
  })
})

describe('the digest that tells a repeat from another payload', () => {
  it('covers what the event says, not its context', () => {
    const digest = (body: string): string => edgeDigest(draftOf(body)).toString('hex')
    const base = digest('{"event_key":"k","type":"t","data":{"a":1}}')
    expect(digest('{"type":"t","run":"r","hops":1,"event_key":"k","data":{"a":1}}')).toBe(base)
    expect(digest('{"event_key":"k","type":"t","data":{"a":2}}')).not.toBe(base)
    expect(digest('{"event_key":"k","type":"u","data":{"a":1}}')).not.toBe(base)
    expect(digest('{"event_key":"k","type":"t","subject":"s","data":{"a":1}}')).not.toBe(base)
  })
})

describe('API keys', () => {
  const look = clientLookup([
    {
      name: 'acme-api',
      tenant: 'acme',
      keySha256: sha256('right').toString('hex'),
      onDuplicate: 'conflict',
      paths: noPaths,
      businessKey: null,
      windowSeconds: 60,
      typeWindows: [],
      maxBodyBytes: 10,
    },
  ])

  it('name their client, and nothing else does', () => {
    const find = (headers: HeaderMap): string | undefined => look(headers)?.name
    expect(find({ authorization: ['Bearer right'] })).toBe('acme-api')
    expect(find({ authorization: ['bearer  right'] })).toBe('acme-api')
    for (const value of ['Bearer wrong', 'Bearer', 'right', 'Basic right', '']) {
      expect(find({ authorization: [value] })).toBeUndefined()
    }
    expect(find({ authorization: ['Bearer right', 'Bearer right'] })).toBeUndefined()
    expect(find({})).toBeUndefined()
  })
})
