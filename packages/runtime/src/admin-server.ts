import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Log } from '@weir/core'
import type { Metrics } from './metrics.ts'

/** How a process is. `null`: fine; a text says why not, for operators. */
export interface Health {
  /** Red means: restart me. */
  live(): string | null
  /** Red means: send me nothing now. */
  ready(): string | null
}

export interface AdminServerOptions {
  readonly host: string
  /** 0 takes any free port. */
  readonly port: number
  readonly health: Health
  readonly metrics: Metrics
  readonly log: Log
}

export interface AdminServer {
  readonly port: number
  /** Answers what is in hand, then closes. May be called twice. */
  close(): Promise<void>
}

/** Serves /livez, /readyz (200 or 503 with the reason) and /metrics. Rejects when the address cannot be bound. */
export async function startAdminServer(options: AdminServerOptions): Promise<AdminServer> {
  const server = createServer((request, response) => {
    answer(options, request, response).catch((error: unknown) => {
      options.log.error({ err: error, path: request.url }, 'admin request failed')
      response.destroy()
    })
  })
  server.requestTimeout = 10_000
  server.headersTimeout = 5_000
  const port = await listen(server, options)
  options.log.info({ host: options.host, port }, 'admin server listens')
  let closing: Promise<void> | null = null
  return {
    port,
    close: async () => {
      closing ??= closeServer(server)
      await closing
    },
  }
}

async function listen(server: Server, { host, port }: AdminServerOptions): Promise<number> {
  return await new Promise<number>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port }, () => {
      server.off('error', reject)
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : port)
    })
  })
}

async function closeServer(server: Server): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.close(error => (error ? reject(error) : resolve()))
    server.closeIdleConnections()
  })
}

async function answer(options: AdminServerOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('allow', 'GET, HEAD')
    send(response, 405, 'use GET')
    return
  }
  const path = (request.url ?? '').split('?', 1)[0]
  if (path === '/livez') sendHealth(response, options.health.live())
  else if (path === '/readyz') sendHealth(response, options.health.ready())
  else if (path === '/metrics') {
    send(response, 200, await options.metrics.text(), options.metrics.registry.contentType)
  } else send(response, 404, 'there are /livez, /readyz and /metrics')
}

function sendHealth(response: ServerResponse, fault: string | null): void {
  send(response, fault === null ? 200 : 503, fault ?? 'ok')
}

function send(response: ServerResponse, status: number, text: string, type = 'text/plain; charset=utf-8'): void {
  response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' })
  response.end(text.endsWith('\n') ? text : `${text}\n`)
}
