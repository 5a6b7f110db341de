import { sha256, type SourceConfiguration } from '@weir/core'
import { describe, expect, it } from 'vitest'
import { toRawEvent } from './event-draft.ts'
import { headersOf, noPaths, sourceOf } from './testing/sources.ts'
import { webhookEvent } from './webhook-event.ts'
import { prepareSource } from './webhook-source.ts'

const github = sourceOf('github', 's', {
  name: 'github',
  paths: { ...noPaths, subject: '/repository/full_name', object: '/issue/id' },
})
const githubHeaders = headersOf({
  'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958',
  'x-github-event': 'issues',
  'x-hub-signature-256': 'sha256=00',
  authorization: 'Bearer secret',
  'content-type': 'application/json',
})

function read(source: SourceConfiguration, body: string | Buffer, headers = githubHeaders) {
  return webhookEvent(prepareSource(source), Buffer.from(body), headers)
}

const facts = {
  tenant: 'acme',
  source: 'github',
  credentialId: 'first',
  deliveryId: '018c7a2e-0000-7000-8000-000000000000',
  receivedAtMs: 1_700_000_000_000,
  traceparent: null,
  tracestate: null,
}

describe('a GitHub delivery', () => {
  it('has id and type from the headers and the rest from the body', () => {
    const draft = read(github, '{"action":"opened","issue":{"id":9007199254740993},"repository":{"full_name":"o/r"}}')
    expect(draft).toMatchObject({
      eventId: '72d3162e-cc78-11e3-81ab-4c9367dc0958',
      keyOrigin: 'provider',
      type: 'issues.opened',
      subject: 'o/r',
      object: '9007199254740993',
      idUnsigned: true,
      eventTimeMs: null,
    })
    expect(toRawEvent(draft, facts).orderingKey).toBe('acme/9007199254740993')
  })

  it('keeps useful headers, never a signature or a credential', () => {
    const names = read(github, '{}').headers.map(header => header.name)
    expect(names).toEqual(['x-github-delivery', 'x-github-event'])
  })

  it('carries the digest of its bytes as second key, since the id is not signed', () => {
    const body = Buffer.from('{"a":1}')
    expect(toRawEvent(read(github, body), facts).secondKey).toEqual(sha256(body))
  })

  it('is read from its form field when GitHub sends forms', () => {
    const form = `payload=${encodeURIComponent('{"action":"closed","issue":{"id":1},"repository":{"full_name":"ö/r"}}')}`
    const headers = { ...githubHeaders, 'content-type': ['application/x-www-form-urlencoded'] }
    expect(read(github, form, headers)).toMatchObject({
      type: 'issues.closed',
      subject: 'ö/r',
      data: Buffer.from(form),
    })
  })
})

describe('what cannot be read', () => {
  const deep = '['.repeat(100_000) + ']'.repeat(100_000)
  it.each([
    ['too_deep', Buffer.from(deep)],
    ['not_json', Buffer.from('{"id":')],
    ['not_utf8', Buffer.from([0x7b, 0xff, 0x7d])],
    ['empty', Buffer.alloc(0)],
    ['missing_event_key', Buffer.from('{"type":"charge.succeeded"}')],
    ['missing_event_key', Buffer.from('{"id":"a\\u0000b"}')],
    ['missing_event_key', Buffer.from('{"id":"\\ud800"}')],
    ['missing_event_key', Buffer.from('{"id":""}')],
    ['missing_event_key', Buffer.from('{"id":{}}')],
    ['missing_event_key', Buffer.from(`{"id":"${'x'.repeat(2000)}"}`)],
  ])('is an `unparsable` event known by its bytes: %s', (fault, body) => {
    const draft = read(sourceOf('stripe', 's'), body, headersOf({ 'content-type': 'application/json' }))
    expect(draft).toMatchObject({
      type: 'unparsable',
      keyOrigin: 'body_digest',
      eventId: `body-${sha256(body).toString('hex')}`,
      data: body,
    })
    expect(draft.headers).toContainEqual({ name: 'weir-unparsable', value: Buffer.from(fault) })
  })

  it('keeps the id of the header where there is one', () => {
    expect(read(github, '{')).toMatchObject({ type: 'unparsable', keyOrigin: 'provider' })
  })

  it('is not used as a key when the header stands twice or under two names', () => {
    const twice = { ...githubHeaders, 'x-github-delivery': ['a', 'b'] }
    expect(read(github, '{}', twice)).toMatchObject({ type: 'unparsable', keyOrigin: 'body_digest' })
  })

  it('drops a text that may not be stored, and the event goes on', () => {
    const body = '{"action":"opened","issue":{"id":"a\\u0000"},"repository":{"full_name":"\\udc00"}}'
    expect(read(github, body)).toMatchObject({ type: 'issues.opened', subject: null, object: null })
  })
})

describe('generic sources', () => {
  const headers = headersOf({ 'x-event-key': 'grüße'.normalize(), 'x-event-type': 'deploy.done' })

  it('takes id and type from headers, and any body', () => {
    const draft = read(
      sourceOf('hmac', 's'),
      Buffer.from('<xml/>'),
      headersOf({ 'x-event-key': 'k1', 'x-event-type': 't' }),
    )
    expect(draft).toMatchObject({ eventId: 'k1', keyOrigin: 'header', type: 't', idUnsigned: true })
  })

  it('reads header bytes as UTF-8, and never guesses at others', () => {
    const latin = { ...headers, 'x-event-key': [Buffer.from('grüße', 'utf8').toString('latin1')] }
    expect(read(sourceOf('hmac', 's'), '{}', latin).eventId).toBe('grüße')
    const broken = { ...headers, 'x-event-key': ['gr\u00fc\u00dfe'] }
    expect(read(sourceOf('hmac', 's'), '{}', broken).keyOrigin).toBe('body_digest')
  })

  it('makes a fingerprint that ignores key order and delivery times, but no named field', () => {
    const key = { header: null, body: null, fingerprint: ['/order', '/stage'] }
    const id = (body: string): string => read(sourceOf('hmac', 's', { key }), body, headers).eventId
    const one = id('{"order":{"a":1,"b":[2]},"stage":"paid","sent_at":1}')
    expect(id('{"sent_at":2,"stage":"paid","order":{"b":[2],"a":1.0}}')).toBe(one)
    expect(id('{"order":{"a":1,"b":[2]},"stage":"open"}')).not.toBe(one)
    expect(id('{"order":9007199254740993,"stage":1}')).not.toBe(id('{"order":9007199254740992,"stage":1}'))
    expect(read(sourceOf('hmac', 's', { key }), '{"order":1}', headers).keyOrigin).toBe('body_digest')
  })

  it('has a business key only when all its values are there, and never a joined one', () => {
    const businessKey = { space: 'order-stage', paths: ['/order', '/stage'] }
    const value = (body: string): unknown => read(sourceOf('hmac', 's', { businessKey }), body, headers).businessKey
    expect(value('{"order":"1","stage":"paid"}')).toEqual({ space: 'order-stage', value: '1/paid' })
    expect(value('{"order":"1/p","stage":"aid"}')).not.toEqual(value('{"order":"1","stage":"p/aid"}'))
    expect(value('{"order":"1"}')).toBeNull()
    expect(value('{"order":"","stage":"paid"}')).toBeNull()
  })

  it('does not start without a rule for the id', () => {
    expect(() => prepareSource(sourceOf('hmac', 's', { key: null }))).toThrow(/event id/)
    expect(() => prepareSource(sourceOf('hmac', 's', { paths: { ...noPaths, subject: 'a/b' } }))).toThrow(/Pointer/)
  })
})

describe('times', () => {
  it('reads Stripe’s seconds and Standard Webhooks’ text as signed times', () => {
    expect(read(sourceOf('stripe', 's'), '{"id":"e","created":1700000000}')).toMatchObject({
      eventTimeMs: 1_700_000_000_000,
      eventTimeSigned: true,
    })
    const standard = sourceOf('standard-webhooks', 'whsec_AAAA')
    const body = '{"timestamp":"2023-11-14T22:13:20Z","type":"x"}'
    expect(read(standard, body, headersOf({ 'svix-id': 'm' }))).toMatchObject({
      eventId: 'm',
      type: 'x',
      idUnsigned: false,
      eventTimeMs: 1_700_000_000_000,
    })
  })
})
