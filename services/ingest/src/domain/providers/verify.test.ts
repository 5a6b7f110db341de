import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import Stripe from 'stripe'
import { describe, expect, it } from 'vitest'
import type { ProviderName, SourceConfiguration } from '@weir/core'
import type { HeaderMap } from '../header-map.ts'
import { headersOf, hmacScheme, sourceOf, timedHmacScheme } from '../testing/sources.ts'
import { providers } from './table.ts'
import { prepareVerifier, verify } from './verify.ts'

const nowMs = 1_700_000_000_000
const standardSecret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

function judge(source: SourceConfiguration, body: Buffer | string, headers: HeaderMap, atMs = nowMs) {
  const result = verify(prepareVerifier(source), typeof body === 'string' ? Buffer.from(body) : body, headers, atMs)
  return result.kind === 'verified' ? result.credentialId : result.reason
}

describe('published vectors', () => {
  it('verifies the example of GitHub’s documentation', () => {
    const headers = headersOf({
      'X-Hub-Signature-256': 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
    })
    expect(judge(sourceOf('github', "It's a Secret to Everybody"), 'Hello, World!', headers)).toBe('first')
  })

  it('verifies the Standard Webhooks vector, under both header families', () => {
    for (const family of ['webhook', 'svix']) {
      const headers = headersOf({
        [`${family}-id`]: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
        [`${family}-timestamp`]: '1614265330',
        [`${family}-signature`]: 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
      })
      const source = sourceOf('standard-webhooks', standardSecret)
      expect(judge(source, '{"test": 2432232314}', headers, 1_614_265_330_000)).toBe('first')
    }
  })

  it('verifies the Stripe scheme', () => {
    const headers = headersOf({
      'Stripe-Signature': 't=1700000000,v1=d95c6b7477fbd7e9f90b1b0ef5f9c7ac25abca5382460e0d988c2b2a5b71b990',
    })
    const body = '{"id":"evt_test_webhook","object":"event"}'
    expect(judge(sourceOf('stripe', 'whsec_test_secret'), body, headers)).toBe('first')
  })

  it('verifies the generic vectors, plain and with a comma-joined time', () => {
    const body = '{"event":"charge.success","amount":1000,"currency":"NGN"}'
    const plain = sourceOf('hmac', 'convoy-webhook-secret', { hmac: { ...hmacScheme, prefix: '' } })
    const mac = '244449b7f48cbc2709060c9dcdc2b3aa47a78f540430579015c579fb12defbb4'
    expect(judge(plain, body, headersOf({ 'x-signature': mac }))).toBe('first')

    const timed = sourceOf('hmac', 'convoy-webhook-secret', { hmac: { ...timedHmacScheme, prefix: '' } })
    const timedMac = '77b8b9269f25a199846a55a2bd25b3fba151c70fdae60bb1dcd87fbbc943c55c'
    expect(judge(timed, body, headersOf({ 'x-signature': timedMac, 'x-timestamp': '1700000000' }))).toBe('first')
  })
})

describe('the providers’ own signers', () => {
  it('agrees with Stripe’s SDK', () => {
    const payload = JSON.stringify({ id: 'evt_1', emoji: '💸' })
    const header = Stripe.webhooks.generateTestHeaderString({ payload, secret: 'whsec_x', timestamp: nowMs / 1000 })
    expect(judge(sourceOf('stripe', 'whsec_x'), payload, headersOf({ 'stripe-signature': header }))).toBe('first')
  })

  it('agrees with the Standard Webhooks SDK', () => {
    const body = '{"type":"order.placed"}'
    const signature = new Webhook(standardSecret).sign('msg_1', new Date(nowMs), body)
    const headers = headersOf({
      'webhook-id': 'msg_1',
      'webhook-timestamp': String(nowMs / 1000),
      'webhook-signature': signature,
    })
    expect(judge(sourceOf('standard-webhooks', standardSecret), body, headers)).toBe('first')
  })
})

interface Case {
  readonly provider: ProviderName
  readonly source: SourceConfiguration
  readonly secret: string
  readonly signatureHeader: string
  /** Text before the signature in its header. */
  readonly lead: RegExp
  readonly timed: boolean
}

const timedSource = sourceOf('hmac', 'shared', {
  hmac: { ...timedHmacScheme, template: '{id}.{timestamp}.{body}' },
})
const cases: readonly Case[] = [
  {
    provider: 'github',
    source: sourceOf('github', 'shared'),
    secret: 'shared',
    signatureHeader: 'x-hub-signature-256',
    lead: /^sha256=/,
    timed: false,
  },
  {
    provider: 'stripe',
    source: sourceOf('stripe', 'whsec_shared'),
    secret: 'whsec_shared',
    signatureHeader: 'stripe-signature',
    lead: /^t=\d+,v1=/,
    timed: true,
  },
  {
    provider: 'standard-webhooks',
    source: sourceOf('standard-webhooks', standardSecret),
    secret: standardSecret,
    signatureHeader: 'webhook-signature',
    lead: /^v1,/,
    timed: true,
  },
  {
    provider: 'hmac',
    source: timedSource,
    secret: 'shared',
    signatureHeader: 'x-signature',
    lead: /^sha256=/,
    timed: true,
  },
]

function signed(c: Case, body: Buffer, atMs = nowMs): Record<string, string> {
  return {
    ...providers[c.provider].sign({
      secret: c.secret,
      body,
      nowMs: atMs,
      id: 'id-1',
      ...(c.source.hmac === null ? {} : { hmac: { scheme: c.source.hmac } }),
    }),
  }
}

describe.each(cases)('$provider', c => {
  const body = Buffer.from('{"id":"evt_1","n":9007199254740993,"text":"grüße 💸"}')
  const headers = (): Record<string, string> => signed(c, body)
  const withSignature = (change: (signature: string) => string): HeaderMap => {
    const own = headers()
    return headersOf({ ...own, [c.signatureHeader]: change(own[c.signatureHeader] ?? '') })
  }

  it('accepts what its own signer signs, whatever the bytes are', () => {
    for (const bytes of [body, Buffer.alloc(0), Buffer.from([0xff, 0xfe, 0]), Buffer.from('\ufeff{}')]) {
      expect(judge(c.source, bytes, headersOf(signed(c, bytes)))).toBe('first')
    }
    expect(judge(c.source, Buffer.alloc(1_048_577, 97), headersOf(signed(c, Buffer.alloc(1_048_577, 97))))).toBe(
      'first',
    )
  })

  it('refuses a body with one bit changed, also where a text decoder would not see it', () => {
    const changed = Buffer.from(body)
    changed[3] = (changed[3] ?? 0) ^ 1
    expect(judge(c.source, changed, headersOf(headers()))).toBe('mismatch')
    const bad = Buffer.from([0x7b, 0xff, 0x7d])
    expect(judge(c.source, Buffer.from([0x7b, 0xfe, 0x7d]), headersOf(signed(c, bad)))).toBe('mismatch')
    expect(judge(c.source, Buffer.concat([body, Buffer.from('\n')]), headersOf(headers()))).toBe('mismatch')
  })

  it('refuses another secret', () => {
    const other = { ...c, secret: c.provider === 'standard-webhooks' ? 'whsec_AAAA' : 'other' }
    expect(judge(c.source, body, headersOf(signed(other, body)))).toBe('mismatch')
  })

  it('refuses a changed, cut or lengthened signature', () => {
    const flip = (s: string): string => s.replace(c.lead, '').replace(/^./, x => (x === 'a' ? 'b' : 'a'))
    expect(
      judge(
        c.source,
        body,
        withSignature(s => (c.lead.exec(s)?.[0] ?? '') + flip(s)),
      ),
    ).toBe('mismatch')
    expect(
      judge(
        c.source,
        body,
        withSignature(s => s.slice(0, -2)),
      ),
    ).toBe('malformed_signature')
    expect(
      judge(
        c.source,
        body,
        withSignature(s => `${s}00`),
      ),
    ).toBe('malformed_signature')
    expect(
      judge(
        c.source,
        body,
        withSignature(s => `${c.lead.exec(s)?.[0] ?? ''}zz`),
      ),
    ).toBe('malformed_signature')
  })

  it('accepts hex in either case', () => {
    if (c.provider === 'standard-webhooks') return
    const upper = withSignature(s => (c.lead.exec(s)?.[0] ?? '') + s.replace(c.lead, '').toUpperCase())
    expect(judge(c.source, body, upper)).toBe('first')
  })

  it('refuses missing and repeated headers', () => {
    const without = headersOf(headers())
    expect(judge(c.source, body, { ...without, [c.signatureHeader]: undefined })).toBe('missing_signature')
    const own = headers()[c.signatureHeader] ?? ''
    expect(judge(c.source, body, { ...without, [c.signatureHeader]: [own, own] })).toBe('repeated_header')
    expect(judge(c.source, body, { ...without, [c.signatureHeader]: [''] })).not.toBe('first')
  })

  it('holds the time within 300 seconds on both sides', () => {
    if (!c.timed) return
    const at = (seconds: number): string => judge(c.source, body, headersOf(headers()), nowMs + seconds * 1000)
    expect(at(300)).toBe('first')
    expect(at(301)).toBe('timestamp_too_old')
    expect(at(-300)).toBe('first')
    expect(at(-301)).toBe('timestamp_too_new')
  })

  it('tries every secret, and none after its end', () => {
    const secrets = [
      { id: 'old', value: c.secret, notAfterMs: nowMs + 1 },
      { id: 'new', value: c.provider === 'standard-webhooks' ? 'whsec_AAAA' : 'whsec_new', notAfterMs: null },
    ]
    const rolling = { ...c.source, secrets }
    expect(judge(rolling, body, headersOf(headers()))).toBe('old')
    const fresh = { ...c, secret: secrets[1]?.value ?? '' }
    expect(judge(rolling, body, headersOf(signed(fresh, body)))).toBe('new')
    const later = signed(c, body, nowMs + 1)
    expect(judge(rolling, body, headersOf(later), nowMs + 1)).toBe('mismatch')
    const ended = { ...c.source, secrets: secrets.slice(0, 1) }
    expect(judge(ended, body, headersOf(later), nowMs + 1)).toBe('no_usable_secret')
  })

  it('does not start without a secret', () => {
    for (const value of [
      '',
      ' ',
      ...(c.provider === 'standard-webhooks' || c.provider === 'stripe' ? ['whsec_'] : []),
    ]) {
      const secrets = [{ id: 'first', value, notAfterMs: null }]
      expect(() => prepareVerifier({ ...c.source, secrets })).toThrow(/first/)
    }
    expect(() => prepareVerifier({ ...c.source, secrets: [] })).toThrow(/no secret/)
  })

  it('never throws, and accepts exactly when the MAC matches', () => {
    const verifier = prepareVerifier(c.source)
    const oracle = headersOf(signed(c, body))
    const right = oracle[c.signatureHeader]?.[0]
    const anyText = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.constant(right ?? ''))
    fc.assert(
      fc.property(
        fc.array(anyText, { maxLength: 3 }),
        fc.uint8Array({ maxLength: 40 }),
        fc.boolean(),
        (values, bytes, same) => {
          const sent = same ? body : Buffer.from(bytes)
          const result = verify(verifier, sent, { ...oracle, [c.signatureHeader]: values }, nowMs)
          const should = values.length === 1 && values[0] === right && sent.equals(body)
          expect(result.kind === 'verified').toBe(should)
        },
      ),
      { numRuns: 300 },
    )
  })
})

describe('details of single schemes', () => {
  const body = Buffer.from('{}')

  it('takes digits alone as a time', () => {
    for (const text of ['1700000000abc', '0x6553f100', ' 1700000000', '1.7e9', '-1', '', '1700000000000']) {
      const mac = createHmac('sha256', 'k').update(`${text},`).update(body).digest('hex')
      const source = sourceOf('hmac', 'k', { hmac: timedHmacScheme })
      const result = judge(source, body, headersOf({ 'x-signature': `sha256=${mac}`, 'x-timestamp': text }))
      expect(['malformed_timestamp', 'timestamp_too_new']).toContain(result)
    }
  })

  it('ignores Stripe’s v0 and a second t', () => {
    const mac = createHmac('sha256', 's').update('1700000000.').update(body).digest('hex')
    const stripe = (header: string): string =>
      judge(sourceOf('stripe', 's'), body, headersOf({ 'stripe-signature': header }))
    expect(stripe(`t=1700000000,v0=${mac}`)).toBe('missing_signature')
    expect(stripe(`t=1700000000,t=1,v1=${mac}`)).toBe('malformed_timestamp')
    expect(stripe(`v1=${mac}`)).toBe('missing_timestamp')
    expect(stripe(`t=1700000000,v1=${'0'.repeat(64)},v1=${mac},v0=x`)).toBe('first')
    expect(stripe(`t=1700000000,${'v1=00,'.repeat(40)}v1=${mac}`)).toBe('malformed_signature')
  })

  it('does not fall from v1a to v1, nor mix header families', () => {
    const own = providers['standard-webhooks'].sign({ secret: standardSecret, body, nowMs, id: 'msg_1' })
    const source = sourceOf('standard-webhooks', standardSecret)
    const asV1a = (own['webhook-signature'] ?? '').replace('v1,', 'v1a,')
    expect(judge(source, body, headersOf({ ...own, 'webhook-signature': asV1a }))).toBe('missing_signature')
    expect(judge(source, body, headersOf({ ...own, 'svix-id': 'msg_2' }))).toBe('repeated_header')
    expect(judge(source, body, headersOf({ ...own, 'webhook-id': 'msg_2' }))).toBe('mismatch')
    const several = `v1a,AAAA v1,${'A'.repeat(43)}= ${own['webhook-signature'] ?? ''}`
    expect(judge(source, body, headersOf({ ...own, 'webhook-signature': several }))).toBe('first')
  })

  it('does not fill a place twice when an id looks like one', () => {
    const hmac = { ...timedHmacScheme, template: '{id}.{timestamp}.{body}' }
    const source = sourceOf('hmac', 'k', { hmac })
    const own = providers.hmac.sign({ secret: 'k', body, nowMs, id: '{timestamp}', hmac: { scheme: hmac } })
    expect(judge(source, body, headersOf(own))).toBe('first')
    expect(judge(source, body, headersOf({ ...own, 'x-event-key': '1700000000' }))).toBe('mismatch')
  })

  it('refuses a generic scheme under which something passes unsigned', () => {
    const start = (hmac: Partial<typeof hmacScheme>) => () =>
      prepareVerifier(sourceOf('hmac', 'k', { hmac: { ...hmacScheme, ...hmac } }))
    expect(start({ template: 'static' })).toThrow(/\{body\}/)
    expect(start({ template: '{body}{body}' })).toThrow(/\{body\}/)
    expect(start({ timestampHeader: 'x-timestamp' })).toThrow(/timestamp/)
    expect(start({ template: '{timestamp}.{body}' })).toThrow(/timestamp/)
    expect(() => prepareVerifier(sourceOf('hmac', 'k', { hmac: null }))).toThrow(/hmac/)
  })
})
