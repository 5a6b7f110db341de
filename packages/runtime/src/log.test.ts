import { WeirError } from '@weir/core'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLog, type LogLevel } from './log.ts'

function recording(level: LogLevel = 'debug'): {
  log: ReturnType<typeof createLog>
  lines: Record<string, unknown>[]
  text: () => string
} {
  const written: string[] = []
  const lines: Record<string, unknown>[] = []
  const destination = {
    write: (line: string) => {
      written.push(line)
      lines.push(JSON.parse(line) as Record<string, unknown>)
    },
  }
  return { log: createLog({ service: 'test', level, destination }), lines, text: () => written.join('') }
}

describe('createLog', () => {
  it('writes JSON lines with level, time, service, message and the fields of all its parents', () => {
    const { log, lines } = recording()
    log.child({ tenant: 'acme' }).child({ partition: 3 }).warn({ offset: 7n }, 'slow batch')
    expect(lines[0]).toMatchObject({
      level: 'warn',
      service: 'test',
      tenant: 'acme',
      partition: 3,
      offset: '7',
      msg: 'slow batch',
    })
    expect(lines[0]?.['time']).toMatch(/^\d{4}-\d{2}-\d{2}T.*Z$/)
  })

  it('writes nothing below its level, children included', () => {
    const { log, lines } = recording('warn')
    log.info({}, 'x')
    log.child({}).debug({}, 'y')
    log.error({}, 'z')
    expect(lines.map(line => line['msg'])).toEqual(['z'])
  })

  it('spells an error out with code, context and causes', () => {
    const { log, lines } = recording()
    const cause = Object.assign(new Error('ECONNREFUSED'), { code: 'ECONNREFUSED' })
    log.error(
      { err: new WeirError('broker_unavailable', 'Kafka is away', { cause, context: { broker: 'a:1' } }) },
      'no broker',
    )
    expect(lines[0]?.['err']).toMatchObject({
      type: 'WeirError',
      code: 'broker_unavailable',
      message: 'Kafka is away',
      context: { broker: 'a:1' },
      cause: { message: 'ECONNREFUSED', code: 'ECONNREFUSED' },
    })
  })

  it('survives circles, depth, size, invalid dates and fields that throw nothing useful', () => {
    const { log, lines } = recording()
    const circle: Record<string, unknown> = { name: 'circle' }
    circle['self'] = circle
    const error = new Error('outer')
    error.cause = error
    let deep: unknown = 'bottom'
    for (let i = 0; i < 50; i++) deep = { deep }
    log.info(
      { circle, deep, many: Array.from({ length: 5_000 }, (_, i) => i), at: new Date(NaN), err: error, f: () => 1 },
      'odd',
    )
    expect(lines[0]).toMatchObject({
      circle: { name: 'circle', self: '[circular]' },
      at: 'invalid date',
      f: '[function]',
    })
    expect(JSON.stringify(lines[0]).length).toBeLessThan(3_000)
  })

  it('never writes bytes', () => {
    const { log, lines } = recording()
    log.info({ value: Buffer.from('abc'), list: [new Uint8Array(2)] }, 'x')
    expect(lines[0]).toMatchObject({ value: '[3 bytes]', list: ['[2 bytes]'] })
  })
})

describe('redaction', () => {
  const secretText = fc.stringMatching(/^[a-zA-Z0-9+=_-]{16,40}$/)
  const names = [
    'authorization',
    'Authorization',
    'proxy-authorization',
    'cookie',
    'set-cookie',
    'x-hub-signature-256',
    'stripe-signature',
    'webhook-signature',
    'X-Signature',
    'signature',
    'secret',
    'secrets',
    'WEIR_SECRET_GITHUB',
    'password',
    'apiKey',
    'api_key',
    'accessToken',
    'keySha256',
    'body',
    'rawBody',
    'payload',
    'DATABASE_URL',
    'REDIS_URL',
  ]
  /** Ways in which a secret may come to a log call. */
  const place = fc.constantFrom<(name: string, secret: string) => object>(
    (name, secret) => ({ [name]: secret }),
    (name, secret) => ({ request: { headers: { [name]: secret } } }),
    (name, secret) => ({ request: { headers: { [name]: [secret, secret] } } }),
    (name, secret) => ({
      headers: [
        ['accept', '*/*'],
        [name, secret],
      ],
    }),
    (name, secret) => ({ headers: new Map([[name, secret]]) }),
    (name, secret) => ({ a: [{ b: { c: { [name]: { inner: secret } } } }] }),
    (name, secret) => ({ [name]: Buffer.from(secret) }),
    (name, secret) => ({ err: new WeirError('internal', 'x', { context: { [name]: secret } }) }),
    (name, secret) => ({
      err: new Error('x', { cause: new WeirError('internal', 'x', { context: { [name]: secret } }) }),
    }),
    (_, secret) => ({ url: `postgres://user:${secret}@host/db` }),
    (_, secret) => ({ err: new Error(`cannot reach redis://:${secret}@host:6379/0`) }),
    (_, secret) => ({ target: new URL(`https://user:${secret}@host/`) }),
  )

  it('leaves no secret in a line, wherever it stands', () => {
    fc.assert(
      fc.property(fc.constantFrom(...names), place, secretText, fc.boolean(), (name, put, secret, asChild) => {
        const { log, text } = recording()
        if (asChild) log.child(put(name, secret)).info({}, 'line')
        else log.info(put(name, secret), 'line')
        expect(text()).toContain('"msg":"line"')
        expect(text()).not.toContain(secret)
      }),
      { numRuns: 1_000 },
    )
  })

  it('still says whether a secret is there', () => {
    const { log, lines } = recording()
    log.info({ DATABASE_URL: 'set', REDIS_URL: 'not set', password: null, signatureValid: true }, 'settings')
    expect(lines[0]).toMatchObject({ DATABASE_URL: 'set', REDIS_URL: 'not set', password: null, signatureValid: true })
  })
})
