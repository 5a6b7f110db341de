import { connect } from 'node:net'
import { randomUUID } from 'node:crypto'
import { sha256, WeirError } from '@weir/core'
import { createMetrics } from '@weir/runtime'
import { afterEach, describe, expect, it } from 'vitest'
import { clientLookup } from '../domain/api-key.ts'
import { providers } from '../domain/providers/table.ts'
import { noPaths, sourceOf } from '../domain/testing/sources.ts'
import { prepareSource } from '../domain/webhook-source.ts'
import { createIngestMetrics } from '../metrics.ts'
import { IngestService } from '../service.ts'
import { createClientIntake } from '../service/client-intake.ts'
import { createProviderIntake } from '../service/provider-intake.ts'
import { ReceiptBook } from '../service/receipts.ts'
import { startHttpServer, type HttpOptions, type HttpServer } from './http-server.ts'
import {
  createMemoryClaims,
  createMemoryLog,
  createMemoryReceipts,
  emptyCache,
  type MemoryLog,
  type MemoryReceipts,
} from './testing/memory-edge.ts'

const limitBytes = 10_000
const quiet = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => quiet,
}

interface Edge {
  readonly server: HttpServer
  readonly base: string
  readonly log: MemoryLog
  readonly receipts: MemoryReceipts
  readonly stop: () => Promise<void>
  readonly metricsText: () => Promise<string>
}

const open: Edge[] = []
afterEach(async () => {
  for (const edge of open.splice(0)) await edge.stop()
})

/** The whole edge over real sockets, its stores in memory. */
async function startEdge(log: MemoryLog = createMemoryLog(), more: Partial<HttpOptions> = {}): Promise<Edge> {
  const clock = { nowMs: () => Date.now() }
  const declared = createMetrics('ingest')
  const metrics = createIngestMetrics(declared)
  const written = createMemoryReceipts()
  const receipts = new ReceiptBook({ log: written, clock, metrics, logger: quiet, flushMs: 5, maxWaiting: 1_000 })
  const shared = { log, metrics, faultPoint: () => undefined }
  const github = sourceOf('github', 's', { maxBodyBytes: limitBytes })
  const service = new IngestService({
    sources: new Map([['github', prepareSource(github)]]),
    clients: clientLookup([
      {
        name: 'acme-api',
        tenant: 'acme',
        keySha256: sha256('right').toString('hex'),
        onDuplicate: 'conflict',
        paths: noPaths,
        businessKey: null,
        windowSeconds: 60,
        typeWindows: [],
        maxBodyBytes: limitBytes,
      },
    ]),
    providerIntake: createProviderIntake({ ...shared, clock, stormThreshold: 20, stormLingerMs: 20 }),
    clientIntake: createClientIntake({
      ...shared,
      claims: createMemoryClaims({ nowMs: clock.nowMs, leaseMs: 30_000 }),
      cache: emptyCache,
      lingerMs: 1,
      waitMs: 1_000,
    }),
    receipts,
    metrics,
    clock,
    newId: randomUUID,
    faultPoint: shared.faultPoint,
  })
  const server = await startHttpServer({
    service,
    metrics,
    clock,
    log: quiet,
    newId: randomUUID,
    host: '127.0.0.1',
    port: 0,
    maxInFlight: 100,
    requestTimeoutMs: 5_000,
    ...more,
  })
  const stop = async (): Promise<void> => {
    server.turnAway()
    await server.close()
    await receipts.close(1_000)
  }
  const base = `http://127.0.0.1:${server.port}`
  const edge = { server, base, log, receipts: written, stop, metricsText: () => declared.text() }
  open.push(edge)
  return edge
}

function signed(body: Buffer, id: string = randomUUID()): Record<string, string> {
  return { ...providers.github.sign({ secret: 's', body, nowMs: Date.now(), id, type: 'push' }) }
}

async function post(url: string, body: Buffer | string, headers: Record<string, string> = {}) {
  const response = await fetch(url, { method: 'POST', body: new Uint8Array(Buffer.from(body)), headers })
  const answer = (await response.json()) as Record<string, unknown>
  return { status: response.status, headers: response.headers, answer, code: answer['code'] }
}

/** Writes raw bytes and returns all that comes back until the connection closes. */
async function raw(edge: Edge, text: string, options: { end?: boolean } = {}): Promise<string> {
  return await new Promise((resolve, reject) => {
    const socket = connect({ port: edge.server.port, host: '127.0.0.1', allowHalfOpen: true }, () => {
      if (options.end === true) socket.end(text)
      else socket.write(text)
    })
    let answer = ''
    socket.setEncoding('utf8')
    socket.on('data', (chunk: string) => {
      answer += chunk
    })
    socket.on('end', () => socket.end())
    socket.on('close', () => resolve(answer))
    socket.on('error', reject)
    socket.setTimeout(8_000, () => socket.destroy(new Error('no answer within 8 s')))
  })
}

const json = { 'content-type': 'application/json' }
const asClient = { ...json, authorization: 'Bearer right' }
const event = (key: string): string => JSON.stringify({ event_key: key, type: 't', data: { n: 1 } })

describe('the HTTP edge', () => {
  it('takes a delivery whose bytes verify, whatever its Content-Type says', async () => {
    const edge = await startEdge()
    const body = Buffer.from('{"ref":"refs/heads/main"}')
    for (const type of ['application/json', 'nonsense', 'a/b; c', 'text/plain; charset=utf-16', '']) {
      expect(
        (await post(`${edge.base}/v1/webhooks/github`, body, { ...signed(body), 'content-type': type })).status,
      ).toBe(202)
    }
    expect(edge.log.events.map(({ data }) => data.equals(body))).toEqual([true, true, true, true, true])
  })

  it('names delivery, event and correlation id in its answer, and carries the trace on', async () => {
    const edge = await startEdge()
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const { answer, headers } = await post(`${edge.base}/v1/events`, event('k'), { ...asClient, traceparent })
    const [written] = edge.log.events
    expect(answer).toEqual({
      status: 'accepted',
      delivery_id: written?.deliveryId,
      event_key: written?.eventKey.toString('hex'),
      correlation_id: headers.get('weir-correlation-id'),
    })
    expect(written?.traceparent).toMatch(/^00-0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}-01$/)
    expect(written?.traceparent).not.toBe(traceparent)
  })

  it('answers a batch event by event', async () => {
    const edge = await startEdge()
    const one = (id: string) => ({ specversion: '1.0', id, source: '/s', type: 't', data: {} })
    const batch = async (...events: unknown[]) =>
      await post(`${edge.base}/v1/events`, JSON.stringify(events), {
        ...asClient,
        'content-type': 'application/cloudevents-batch+json',
      })
    expect((await batch(one('1'), one('2'))).status).toBe(202)
    const mixed = await batch(one('2'), one('3'))
    expect(mixed.status).toBe(207)
    expect(mixed.answer['results']).toMatchObject([
      { code: 'duplicate_event_key', original_delivery_id: edge.log.events[1]?.deliveryId },
      { code: 'ok', delivery_id: edge.log.events[2]?.deliveryId },
    ])
    const bad = await batch(one('4'), { id: 5 })
    expect([bad.status, bad.code]).toEqual([400, 'invalid_value'])
    expect(edge.log.events).toHaveLength(4)
  })

  it('answers a body over the limit with 413, and the connection goes on when it could be read', async () => {
    const edge = await startEdge()
    const url = `${edge.base}/v1/webhooks/github`
    const large = Buffer.alloc(2 * 1_048_576, 97)
    expect(await post(url, large, signed(large))).toMatchObject({ status: 413, code: 'too_large' })
    const chunked = `POST /v1/webhooks/github HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5000\r\n${'a'.repeat(0x5000)}\r\n0\r\n\r\n`
    const second = `GET /v1/events HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`
    expect(statusLines(await raw(edge, chunked + second))).toEqual(['413', '405'])
    const announced = `POST /v1/webhooks/github HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999\r\n\r\n`
    expect(statusLines(await raw(edge, announced))).toEqual(['413'])
    expect(edge.log.events).toHaveLength(0)
  })

  it('refuses what nobody may send before its body is held', async () => {
    const edge = await startEdge()
    const large = Buffer.alloc(1_048_576)
    expect(await post(`${edge.base}/v1/webhooks/nobody`, large)).toMatchObject({ status: 404, code: 'unknown_source' })
    const unauthorized = await post(`${edge.base}/v1/events`, large, json)
    expect(unauthorized).toMatchObject({ status: 401, code: 'unauthorized' })
    expect(unauthorized.headers.get('www-authenticate')).toBe('Bearer')
    expect(await edge.metricsText()).not.toContain('nobody')
  })

  it('gives one answer to every bad signature', async () => {
    const edge = await startEdge()
    const body = Buffer.from('{}')
    const url = `${edge.base}/v1/webhooks/github`
    const answers = [
      await post(url, body, json),
      await post(url, body, { ...signed(body), 'x-hub-signature-256': 'sha256=00' }),
      await post(url, Buffer.from('{ }'), signed(body)),
    ]
    const bodies = answers.map(({ status, answer }) => ({ status, ...answer, correlation_id: '' }))
    expect(new Set(bodies.map(each => JSON.stringify(each))).size).toBe(1)
    expect(bodies[0]).toMatchObject({ status: 401, code: 'bad_signature' })
  })

  it('answers problems for other paths and methods', async () => {
    const edge = await startEdge()
    const method = await fetch(`${edge.base}/v1/events`, { method: 'DELETE' })
    expect([method.status, method.headers.get('allow'), method.headers.get('content-type')]).toEqual([
      405,
      'POST',
      'application/problem+json',
    ])
    expect((await post(`${edge.base}/elsewhere`, '{}', json)).code).toBe('not_found')
    expect((await post(`${edge.base}/v1/webhooks/%zz`, '{}', json)).status).toBe(404)
    expect((await post(`${edge.base}/v1/webhooks/${'a'.repeat(300)}`, '{}', json)).status).toBe(404)
  })

  it('answers a body that was cut off with 400 while the sender still listens', async () => {
    const edge = await startEdge()
    const cut = 'POST /v1/webhooks/github HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{"ref":'
    const answer = await raw(edge, cut, { end: true })
    expect(statusLines(answer)).toEqual(['400'])
    expect(answer).toContain('application/problem+json')
    await expect
      .poll(() => edge.receipts.written.map(({ reason, source }) => [reason, source]))
      .toEqual([['malformed', 'github']])
    const body = Buffer.from('{}')
    expect((await post(`${edge.base}/v1/webhooks/github`, body, signed(body))).status).toBe(202)
  })

  it('answers large headers with 431 and slow bodies with 408', async () => {
    const edge = await startEdge(createMemoryLog(), { requestTimeoutMs: 300 })
    const headers = `POST /v1/events HTTP/1.1\r\nhost: x\r\nbig: ${'a'.repeat(20_000)}\r\n\r\n`
    expect(await raw(edge, headers)).toMatch(/^HTTP\/1.1 431 [\s\S]*headers_too_large/)
    const slow = 'POST /v1/webhooks/github HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n{'
    expect(await raw(edge, slow)).toMatch(/^HTTP\/1.1 408 [\s\S]*too_slow/)
    expect(await raw(edge, 'nonsense\r\n\r\n')).toMatch(/^HTTP\/1.1 400 [\s\S]*malformed/)
    await expect
      .poll(() => edge.receipts.written.map(({ status }) => status).toSorted((a, b) => a - b))
      .toEqual([400, 408, 431])
  })

  it('is 503 with Retry-After, never 2xx, while Kafka is away', async () => {
    const edge = await startEdge(
      createMemoryLog(() => Promise.reject(new WeirError('broker_unavailable', 'kafka-1:9092 is gone'))),
    )
    const body = Buffer.from('{}')
    for (const answered of [
      await post(`${edge.base}/v1/webhooks/github`, body, signed(body)),
      await post(`${edge.base}/v1/events`, event('k'), asClient),
    ]) {
      expect([answered.status, answered.code, answered.headers.get('retry-after')]).toEqual([
        503,
        'temporarily_unavailable',
        '2',
      ])
      expect(JSON.stringify(answered.answer)).not.toContain('kafka')
    }
  })

  it('shows nothing from inside when something breaks', async () => {
    const edge = await startEdge(createMemoryLog(() => Promise.reject(new TypeError('secret internals'))))
    const body = Buffer.from('{}')
    const { status, answer } = await post(`${edge.base}/v1/webhooks/github`, body, signed(body))
    expect([status, answer['code']]).toEqual([500, 'internal'])
    expect(JSON.stringify(answer)).not.toContain('secret')
  })

  it('turns away what is too much at once, and takes more afterwards', async () => {
    const gates: (() => void)[] = []
    const log = createMemoryLog(
      async () =>
        await new Promise<void>(resolve => {
          gates.push(resolve)
        }),
    )
    const edge = await startEdge(log, { maxInFlight: 5 })
    const bodies = Array.from({ length: 12 }, (_, i) => Buffer.from(`{"n":${i}}`))
    const answers = Promise.all(
      bodies.map(async body => (await post(`${edge.base}/v1/webhooks/github`, body, signed(body))).status),
    )
    await expect.poll(() => gates.length).toBe(5)
    await expect.poll(() => edge.receipts.written.reduce((sum, { count }) => sum + count, 0)).toBe(7)
    for (const gate of gates.splice(0)) gate()
    expect((await answers).toSorted((a, b) => a - b)).toEqual([
      202, 202, 202, 202, 202, 503, 503, 503, 503, 503, 503, 503,
    ])
  })

  it('finishes what is in hand when it stops, and takes nothing new', async () => {
    let release = (): void => undefined
    const log = createMemoryLog(
      async () =>
        await new Promise<void>(resolve => {
          release = resolve
        }),
    )
    const edge = await startEdge(log)
    const body = Buffer.from('{}')
    const inHand = post(`${edge.base}/v1/webhooks/github`, body, signed(body))
    await expect.poll(() => release.name).not.toBe('release')
    edge.server.turnAway()
    expect((await post(`${edge.base}/v1/webhooks/github`, body, signed(body))).status).toBe(503)
    const stopped = edge.stop()
    release()
    expect((await inHand).status).toBe(202)
    await stopped
    expect(edge.log.events).toHaveLength(1)
    await expect(fetch(edge.base)).rejects.toThrow('fetch failed')
  })

  it('leaves a receipt for every answer', async () => {
    const edge = await startEdge()
    const body = Buffer.from('{}')
    await post(`${edge.base}/v1/webhooks/github`, body, signed(body))
    await post(`${edge.base}/v1/webhooks/github`, body, json)
    await post(`${edge.base}/v1/webhooks/no%00body`, body, json)
    await post(`${edge.base}/v1/events`, event('k'), asClient)
    await post(`${edge.base}/v1/events`, event('k'), asClient)
    await expect
      .poll(() => edge.receipts.written.map(({ source, outcome, reason, status }) => [source, outcome, reason, status]))
      .toEqual([
        ['github', 'accepted', 'ok', 202],
        ['github', 'rejected', 'bad_signature', 401],
        ['-', 'rejected', 'unknown_source', 404],
        ['acme-api', 'accepted', 'ok', 202],
        ['acme-api', 'duplicate', 'duplicate_event_key', 409],
      ])
  })
})

function statusLines(text: string): string[] {
  return [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(match => match[1] ?? '')
}
