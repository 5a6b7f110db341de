import type { Socket } from 'node:net'
import { errorCatalogue, type Clock, type Log } from '@weir/core'
import { childTraceparent, parseTraceparent } from '@weir/runtime'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { IngestMetrics } from '../metrics.ts'
import type { NewId } from '../ports.ts'
import type { IngestService } from '../service.ts'
import type { Answer, BrokenCode, IntakeRequest, Route } from '../service/request.ts'
import { readBody } from './request-body.ts'

export interface HttpOptions {
  readonly host: string
  readonly port: number
  readonly service: IngestService
  readonly metrics: IngestMetrics
  readonly clock: Clock
  readonly log: Log
  readonly newId: NewId
  /** Requests being read or answered at once; more are answered 503. */
  readonly maxInFlight: number
  /** Time in which a whole request must have arrived, milliseconds. */
  readonly requestTimeoutMs: number
}

export interface HttpServer {
  readonly port: number
  /** From now on every request is answered 503. */
  turnAway(): void
  /** Finishes what is in hand, then closes. */
  close(): Promise<void>
}

const maxHeaderBytes = 16 * 1_024
const correlationHeader = 'weir-correlation-id'
const webhookPath = '/v1/webhooks/:source'
const eventsPath = '/v1/events'
const otherMethods = ['GET', 'PUT', 'PATCH', 'DELETE']

/** Bodies come as the bytes received; nothing is parsed before it is verified. */
export async function startHttpServer(options: HttpOptions): Promise<HttpServer> {
  const intake = new HttpIntake(options)
  const app = Fastify({
    requestTimeout: options.requestTimeoutMs,
    // Well behind the request's own limit and the interval it is looked at: a silent end would hide the 408.
    connectionTimeout: 2 * options.requestTimeoutMs + 5_000,
    keepAliveTimeout: 65_000,
    forceCloseConnections: 'idle',
    // While closing, a kept connection gets our 503, not the framework's.
    return503OnClosing: false,
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: 256 },
    http: {
      maxHeaderSize: maxHeaderBytes,
      headersTimeout: options.requestTimeoutMs,
      // How often the time limits are looked at; Node's own 30 s would let a slow sender hold a place that long.
      connectionsCheckingInterval: Math.min(1_000, options.requestTimeoutMs),
    },
    frameworkErrors: (error, request, reply) => void intake.failed(error, request, reply),
    clientErrorHandler: (error, socket) => intake.brokenConnection(error, socket),
  })
  // More connections than requests in flight, since most are kept open and idle.
  app.server.maxConnections = 4 * options.maxInFlight
  app.removeAllContentTypeParsers()
  app.addHook('onRequest', async (request, reply) => intake.begin(request, reply))
  app.addHook('onResponse', async request => intake.end(request))
  app.addHook('onRequestAbort', async request => intake.end(request))
  addRoutes(app, intake)
  app.setErrorHandler(async (error, request, reply) => intake.failed(error, request, reply))
  await app.listen({ host: options.host, port: options.port })
  const address = app.server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : options.port,
    turnAway: () => intake.turnAway(),
    close: async () => await app.close(),
  }
}

/**
 * The body is read in the route's first hook and not by the framework, which would refuse a verified delivery for an odd
 * Content-Type and close the connection of a sender that is still sending.
 */
function addRoutes(app: FastifyInstance, intake: HttpIntake): void {
  const onRequest = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> =>
    await intake.take(request, reply)
  for (const url of [webhookPath, eventsPath]) {
    app.route({ method: 'POST', url, onRequest, handler: (_request, reply) => reply })
    app.route({
      method: otherMethods,
      url,
      handler: async (request, reply) => intake.broken('method_not_allowed', request, reply),
    })
  }
  app.setNotFoundHandler(async (request, reply) => intake.broken('not_found', request, reply))
}

interface Open {
  readonly startedMs: number
  readonly correlationId: string
}

class HttpIntake {
  readonly #options: HttpOptions
  readonly #open = new Map<FastifyRequest, Open>()
  readonly #bySocket = new WeakMap<Socket, FastifyRequest>()
  /** Their connection broke, and they were answered below the framework. */
  readonly #answered = new WeakSet<FastifyRequest>()
  #isTurningAway = false

  constructor(options: HttpOptions) {
    this.#options = options
  }

  turnAway(): void {
    this.#isTurningAway = true
  }

  begin(request: FastifyRequest, reply: FastifyReply): FastifyReply | undefined {
    const { metrics, clock, maxInFlight, newId } = this.#options
    const isFull = this.#open.size >= maxInFlight
    this.#open.set(request, { startedMs: clock.nowMs(), correlationId: newId() })
    this.#bySocket.set(request.raw.socket, request)
    metrics.inFlight.set({}, this.#open.size)
    if (!isFull && !this.#isTurningAway) return undefined
    if (this.#isTurningAway) reply.header('connection', 'close')
    return this.broken('temporarily_unavailable', request, reply)
  }

  end(request: FastifyRequest): void {
    const open = this.#open.get(request)
    if (open !== undefined) {
      const { metrics, clock } = this.#options
      this.#open.delete(request)
      this.#bySocket.delete(request.raw.socket)
      metrics.inFlight.set({}, this.#open.size)
      const caller = routeOf(request).kind === 'events' ? 'client' : 'provider'
      metrics.requestSeconds.observe({ caller }, (clock.nowMs() - open.startedMs) / 1_000)
    }
  }

  /** Reads the body within its bounds and answers. */
  async take(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { service } = this.#options
    const opened = service.open(routeOf(request), this.#intakeOf(request))
    const limitBytes = opened.kind === 'read' ? opened.limitBytes : 0
    const read = await readBody(request.raw, limitBytes)
    if (read.kind === 'cut' && this.#answered.has(request)) {
      this.end(request)
      return reply.hijack()
    }
    if (opened.kind === 'answer') {
      if (read.kind === 'too_large' && !read.isRead) reply.header('connection', 'close')
      return this.#send(reply, opened.answer, request)
    }
    switch (read.kind) {
      case 'body':
        return this.#send(reply, await opened.accept(this.#intakeOf(request, read.bytes)), request)
      case 'too_large':
        if (!read.isRead) reply.header('connection', 'close')
        return this.broken('too_large', request, reply, read.sizeBytes)
      case 'cut':
        return this.broken('malformed', request, reply, read.sizeBytes)
    }
  }

  broken(code: BrokenCode, request: FastifyRequest, reply: FastifyReply, sizeBytes = 0): FastifyReply {
    const intake = { ...this.#intakeOf(request), sizeBytes }
    return this.#send(reply, this.#options.service.broken(code, routeOf(request), intake), request)
  }

  failed(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const code = frameworkCodes[codeOf(error)] ?? 'internal'
    if (code === 'internal') this.#options.log.error({ err: error, url: request.routeOptions.url }, 'a request failed')
    return this.broken(code, request, reply)
  }

  /** What the HTTP parser or its time limits give up on. There may be no request yet, so the answer is written by hand. */
  brokenConnection(error: Error, socket: Socket): void {
    const request = this.#bySocket.get(socket)
    const isAnswered = request !== undefined && this.#answered.has(request)
    const code = connectionCodes[codeOf(error)] ?? 'malformed'
    if (isAnswered || !socket.writable || codeOf(error) === 'ECONNRESET') {
      socket.destroy(error)
      return
    }
    if (request !== undefined) this.#answered.add(request)
    const route: Route = request === undefined ? { kind: 'elsewhere' } : routeOf(request)
    const intake = request === undefined ? this.#unread() : this.#intakeOf(request)
    const answer = this.#options.service.broken(code, route, intake)
    socket.end(rawAnswer(answer, intake.correlationId))
  }

  #unread(): IntakeRequest {
    return {
      body: Buffer.alloc(0),
      sizeBytes: 0,
      headers: {},
      correlationId: this.#options.newId(),
      traceparent: null,
      tracestate: null,
    }
  }

  #intakeOf(request: FastifyRequest, body: Buffer = Buffer.alloc(0)): IntakeRequest {
    const headers = request.raw.headersDistinct
    const parent = headers['traceparent']?.length === 1 ? parseTraceparent(headers['traceparent'][0] ?? '') : null
    const tracestate = parent === null ? null : (headers['tracestate']?.join(',').slice(0, 512) ?? null)
    return {
      body,
      sizeBytes: body.length,
      headers,
      correlationId: this.#correlationOf(request),
      traceparent: childTraceparent(parent),
      tracestate,
    }
  }

  /** One id per request, whatever becomes of it. */
  #correlationOf(request: FastifyRequest): string {
    return this.#open.get(request)?.correlationId ?? this.#options.newId()
  }

  #send(reply: FastifyReply, answer: Answer, request: FastifyRequest): FastifyReply {
    const { plan, body } = answer
    return (
      reply
        .status(plan.status)
        .headers({
          ...plan.headers,
          'content-type': contentTypeOf(answer),
          [correlationHeader]: this.#correlationOf(request),
        })
        // Bytes, so that no charset is added: these media types have none.
        .send(Buffer.from(JSON.stringify(body), 'utf8'))
    )
  }
}

function contentTypeOf({ plan }: Answer): string {
  return plan.code === 'ok' ? 'application/json' : 'application/problem+json'
}

function routeOf(request: FastifyRequest): Route {
  const { url } = request.routeOptions
  if (url === eventsPath) return { kind: 'events' }
  if (url !== webhookPath) return { kind: 'elsewhere' }
  const { source } = request.params as { readonly source: string }
  return { kind: 'webhook', source }
}

function rawAnswer(answer: Answer, correlationId: string): string {
  const { plan } = answer
  const body = JSON.stringify(answer.body)
  const title = plan.code === 'ok' ? 'OK' : errorCatalogue[plan.code].title
  const headers = {
    ...plan.headers,
    [correlationHeader]: correlationId,
    'content-type': contentTypeOf(answer),
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${plan.status} ${title}\r\n${lines.join('')}\r\n${body}`
}

const frameworkCodes: Readonly<Record<string, BrokenCode>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'malformed',
  FST_ERR_BAD_URL: 'not_found',
  FST_ERR_MAX_PARAM_LENGTH: 'not_found',
}

const connectionCodes: Readonly<Record<string, BrokenCode>> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'too_slow',
}

function codeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : ''
}
