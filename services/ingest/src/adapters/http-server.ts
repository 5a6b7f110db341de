import type { Clock, Log } from '@weir/core'
import { childTraceparent, parseTraceparent } from '@weir/runtime'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { IngestMetrics } from '../metrics.ts'
import type { NewId } from '../ports.ts'
import type { IngestService } from '../service.ts'
import type { Answer, BrokenCode, IntakeRequest } from '../service/request.ts'

export interface HttpOptions {
  readonly host: string
  readonly port: number
  readonly service: IngestService
  readonly metrics: IngestMetrics
  readonly clock: Clock
  readonly log: Log
  readonly newId: NewId
  /** Largest body of any source, bytes. */
  readonly maxBodyBytes: number
  readonly maxInFlight: number
  readonly requestTimeoutMs: number
}

export interface HttpServer {
  readonly port: number
  /** From now on every request is answered 503. */
  turnAway(): void
  close(): Promise<void>
}

const maxHeaderBytes = 16 * 1_024
const correlationHeader = 'weir-correlation-id'

/** Bodies come as the bytes received; nothing is parsed before it is verified. */
export async function startHttpServer(options: HttpOptions): Promise<HttpServer> {
  const app = Fastify({
    bodyLimit: options.maxBodyBytes,
    requestTimeout: options.requestTimeoutMs,
    connectionTimeout: 2 * options.requestTimeoutMs,
    keepAliveTimeout: 65_000,
    forceCloseConnections: 'idle',
    routerOptions: { maxParamLength: 256 },
    http: { maxHeaderSize: maxHeaderBytes },
  })
  const intake = new HttpIntake(options)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: options.maxBodyBytes }, (_request, body, done) =>
    done(null, body),
  )
  app.addHook('onRequest', async (request, reply) => await intake.begin(request, reply))
  app.addHook('onResponse', async request => await intake.end(request))
  app.addHook('onRequestAbort', async request => await intake.end(request))
  app.post('/v1/webhooks/:source', async (request, reply) => await intake.webhook(request, reply))
  app.post('/v1/events', async (request, reply) => await intake.events(request, reply))
  answerOtherMethods(app, intake)
  app.setErrorHandler(async (error, request, reply) => await intake.failed(error, request, reply))
  await app.listen({ host: options.host, port: options.port })
  const address = app.server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : options.port,
    turnAway: () => intake.turnAway(),
    close: async () => await app.close(),
  }
}

function answerOtherMethods(app: FastifyInstance, intake: HttpIntake): void {
  app.route({
    method: ['GET', 'PUT', 'PATCH', 'DELETE'],
    url: '/v1/webhooks/:source',
    handler: async (request, reply) => await intake.broken('method_not_allowed', request, reply),
  })
  app.route({
    method: ['GET', 'PUT', 'PATCH', 'DELETE'],
    url: '/v1/events',
    handler: async (request, reply) => await intake.broken('method_not_allowed', request, reply),
  })
  app.setNotFoundHandler(async (request, reply) => await intake.broken('not_found', request, reply))
}

interface Open {
  readonly startedMs: number
  readonly caller: string
}

class HttpIntake {
  readonly #options: HttpOptions
  readonly #open = new Map<FastifyRequest, Open>()
  #isTurningAway = false

  constructor(options: HttpOptions) {
    this.#options = options
  }

  turnAway(): void {
    this.#isTurningAway = true
  }

  async begin(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { metrics, clock, maxInFlight } = this.#options
    const isFull = this.#open.size >= maxInFlight
    this.#open.set(request, {
      startedMs: clock.nowMs(),
      caller: request.url.startsWith('/v1/events') ? 'client' : 'provider',
    })
    metrics.inFlight.set({}, this.#open.size)
    if (isFull || this.#isTurningAway) await this.broken('temporarily_unavailable', request, reply)
  }

  end(request: FastifyRequest): Promise<void> {
    const open = this.#open.get(request)
    if (open !== undefined) {
      const { metrics, clock } = this.#options
      this.#open.delete(request)
      metrics.inFlight.set({}, this.#open.size)
      metrics.requestSeconds.observe({ caller: open.caller }, (clock.nowMs() - open.startedMs) / 1_000)
    }
    return Promise.resolve()
  }

  async webhook(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { source } = request.params as { readonly source: string }
    await send(reply, await this.#options.service.webhook(source, this.#intakeOf(request, bodyOf(request))), request)
  }

  async events(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    await send(reply, await this.#options.service.events(this.#intakeOf(request, bodyOf(request))), request)
  }

  async broken(code: BrokenCode, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const source = (request.params as { readonly source?: string } | undefined)?.source ?? null
    const answer = this.#options.service.broken(code, { source }, this.#intakeOf(request, Buffer.alloc(0)))
    await send(reply, answer, request)
  }

  async failed(error: unknown, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const code = codeOf(error)
    if (code === 'internal') this.#options.log.error({ err: error, url: request.routeOptions.url }, 'a request failed')
    // The rest of a body that is too large or too slow is not read.
    if (code !== 'internal') reply.header('connection', 'close')
    await this.broken(code, request, reply)
  }

  #intakeOf(request: FastifyRequest, body: Buffer): IntakeRequest {
    const headers = request.raw.headersDistinct
    const parent = headers['traceparent']?.length === 1 ? parseTraceparent(headers['traceparent'][0] ?? '') : null
    const tracestate = parent === null ? null : (headers['tracestate']?.join(',').slice(0, 512) ?? null)
    return {
      body,
      headers,
      correlationId: correlationOf(request, this.#options.newId),
      traceparent: childTraceparent(parent),
      tracestate,
    }
  }
}

const correlations = new WeakMap<FastifyRequest, string>()

/** One id per request, whatever becomes of it. */
function correlationOf(request: FastifyRequest, newId: NewId): string {
  const known = correlations.get(request)
  if (known !== undefined) return known
  const id = newId()
  correlations.set(request, id)
  return id
}

function bodyOf(request: FastifyRequest): Buffer {
  return Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
}

function send(reply: FastifyReply, answer: Answer, request: FastifyRequest): FastifyReply {
  const { plan, body } = answer
  return reply
    .status(plan.status)
    .headers({ ...plan.headers, [correlationHeader]: correlations.get(request) ?? '' })
    .type(plan.code === 'ok' ? 'application/json' : 'application/problem+json')
    .send(JSON.stringify(body))
}

const brokenCodes: Readonly<Record<string, BrokenCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'too_large',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'malformed',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'malformed',
  FST_ERR_BAD_URL: 'not_found',
  ECONNRESET: 'malformed',
  ECONNABORTED: 'malformed',
  ERR_HTTP_REQUEST_TIMEOUT: 'too_slow',
}

function codeOf(error: unknown): BrokenCode {
  const code = typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : ''
  return brokenCodes[code] ?? 'internal'
}
