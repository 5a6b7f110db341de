// What every HTTP side of Weir has: keys by their hashes, and RFC 9457 problem details.
import { createHash, randomUUID, timingSafeEqual } from 'node:crypto'
import { errorCatalogue, WeirError, type ErrorCode, type Log } from '@weir/core'
import type { FastifyInstance, FastifyReply } from 'fastify'

/**
 * Whoever has the API key of an `Authorization: Bearer <key>` header; null when nobody has. All holders are compared, in constant time
 * each: the answer's time tells nothing about which key is close.
 */
export function bearerOf<T extends { readonly keySha256: string | null }>(
  holders: readonly T[],
  authorization: string | undefined,
): T | null {
  const [scheme, key] = (authorization ?? '').split(' ')
  const digest = createHash('sha256')
    .update(key ?? '')
    .digest()
  let found: T | null = null
  for (const holder of holders) {
    const wanted = Buffer.from(holder.keySha256 ?? '', 'hex')
    if (wanted.length === digest.length && timingSafeEqual(wanted, digest)) found = holder
  }
  return scheme?.toLowerCase() === 'bearer' ? found : null
}

/** A value of a request that is not allowed; the caller reads `detail`. */
export function invalidValue(detail: string): WeirError {
  return new WeirError('invalid_value', detail, { publicDetail: detail })
}

/** Every error is answered as a problem; what operators need goes to the log under the same correlation id. */
export function answerProblems(app: FastifyInstance, log: Log): void {
  app.setNotFoundHandler(async (_request, reply) => await problem(reply, 'not_found', undefined))
  app.setErrorHandler(async (error, _request, reply) => {
    if (error instanceof WeirError && errorCatalogue[error.code].status !== 0) {
      return await problem(reply, error.code, error.publicDetail)
    }
    const framework = frameworkCode(error)
    if (framework !== null) return await problem(reply, framework, undefined)
    const isAway = error instanceof WeirError && error.retriable
    const correlationId = randomUUID()
    log.error({ err: error, correlationId }, 'a request failed')
    return await problem(reply, isAway ? 'temporarily_unavailable' : 'internal', undefined, correlationId)
  })
}

const frameworkCodes: Readonly<Record<number, ErrorCode>> = {
  400: 'malformed',
  413: 'too_large',
  415: 'unsupported_media_type',
}

/** What the framework refuses before a handler sees it. */
function frameworkCode(error: unknown): ErrorCode | null {
  const status = error instanceof Error && 'statusCode' in error ? Number(error.statusCode) : 0
  return frameworkCodes[status] ?? null
}

async function problem(
  reply: FastifyReply,
  code: ErrorCode,
  detail: string | undefined,
  correlationId: string = randomUUID(),
): Promise<FastifyReply> {
  const { status, title, remedy } = errorCatalogue[code]
  if (status === 401) reply.header('www-authenticate', 'Bearer')
  if (status === 503) reply.header('retry-after', '2')
  return await reply
    .status(status)
    .type('application/problem+json')
    .send({
      type: `https://weir.dev/problems/${code.replaceAll('_', '-')}`,
      title,
      status,
      detail: detail ?? remedy,
      correlation_id: correlationId,
    })
}
