import { textFault, WeirError, type AnalystConfiguration, type Log } from '@weir/core'
import { answerProblems, bearerOf, invalidValue } from '@weir/runtime'
import Fastify, { type FastifyRequest } from 'fastify'
import { unpackHeaders } from '../domain/columns.ts'
import { questionNames, questionsFor, type Question } from '../domain/question.ts'
import type { AuditQueries, MessageFilter, TenantScope } from '../ports.ts'
import { answerWhy } from '../service/why.ts'

export interface ApiOptions {
  readonly host: string
  readonly port: number
  readonly analysts: readonly AnalystConfiguration[]
  readonly queries: AuditQueries
  readonly log: Log
}

type Query = Readonly<Record<string, string | string[] | undefined>>

const maxPage = 1_000

/** The analysts' API. Every request needs a key of weir.yaml; an analyst sees the tenants it was given and no others. */
export async function startApi(options: ApiOptions): Promise<{ readonly port: number; close(): Promise<void> }> {
  const app = Fastify({ bodyLimit: 1_024, requestTimeout: 30_000 })
  const { queries } = options
  answerProblems(app, options.log)
  app.get('/v1/why', async (request, reply) => {
    const { scope } = authorize(options, request)
    return await reply.send(await why(queries, request.query as Query, scope))
  })
  app.get('/v1/messages', async (request, reply) => {
    const { scope } = authorize(options, request)
    const filter = filterOf(request.query as Query)
    const rows = await queries.messages(filter, scopeOf(scope, request.query as Query))
    const page = rows.slice(0, filter.limit)
    const complete = rows.length <= filter.limit
    return await reply.send({ messages: page, complete, cursor: page.at(-1)?.leafIndex ?? filter.after })
  })
  app.get('/v1/messages/:leaf', async (request, reply) => {
    const { scope } = authorize(options, request)
    const message = await queries.message(integer('leaf', (request.params as { leaf: string }).leaf), scope)
    if (message === null) throw new WeirError('not_found', 'no such message')
    const { key, value, headers, ...columns } = message
    return await reply.send({
      ...columns,
      key: key?.toString('base64') ?? null,
      value: value?.toString('base64') ?? null,
      headers: unpackHeaders(headers).map(([name, bytes]) => [name, bytes.toString('base64')]),
    })
  })
  app.get('/v1/coverage', async (request, reply) => {
    authorize(options, request)
    return await reply.send({ logs: await queries.coverage() })
  })
  await app.listen({ host: options.host, port: options.port })
  const address = app.server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : options.port,
    close: async () => await app.close(),
  }
}

async function why(queries: AuditQueries, query: Query, granted: TenantScope) {
  const scope = scopeOf(granted, query)
  const asked = questionsOf(query)
  if (asked.length === 0) {
    throw invalidValue(`ask with one of ${['q', ...questionNames].join(', ')}, for example /v1/why?subject=acme/api`)
  }
  const answer = await answerWhy(queries, asked, scope)
  if (answer !== null) return answer
  throw new WeirError('not_found', 'nothing is known about it', {
    publicDetail: 'Nothing is known about it. GET /v1/coverage tells how far the store has landed.',
  })
}

function questionsOf(query: Query): Question[] {
  for (const name of ['q', ...questionNames] as const) {
    const value = query[name]
    if (typeof value !== 'string') continue
    const questions = questionsFor(name === 'q' ? 'any' : name, value)
    if ('fault' in questions) throw invalidValue(questions.fault)
    return [...questions]
  }
  return []
}

function filterOf(query: Query): MessageFilter {
  const questions = questionNames.flatMap(name => {
    const value = query[name]
    if (typeof value !== 'string') return []
    const found = questionsFor(name, value)
    if ('fault' in found) throw invalidValue(found.fault)
    return [...found]
  })
  const text = (name: string): string | null => textOf(query, name)
  const number = (name: string): number | null => (text(name) === null ? null : integer(name, text(name) ?? ''))
  const limit = number('limit') ?? 100
  if (limit < 1 || limit > maxPage) throw invalidValue(`limit is ${limit}, not between 1 and ${maxPage}`)
  return {
    questions,
    agent: text('agent'),
    kind: text('kind'),
    fromMs: number('from_ms'),
    toMs: number('to_ms'),
    after: number('cursor') ?? -1,
    limit,
  }
}

/** One text parameter, fit for a statement; null when it is not there. */
function textOf(query: Query, name: string): string | null {
  const value = query[name]
  if (value === undefined) return null
  if (typeof value !== 'string') throw invalidValue(`${name} is there more than once`)
  const fault = textFault(value, 1_024)
  if (fault !== null) throw invalidValue(`${name} is ${fault}`)
  return value
}

function integer(name: string, text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw invalidValue(`${name} is "${text.slice(0, 40)}", not a whole number`)
}

/** The tenant asked for, when the analyst may see it; else all it may see. */
function scopeOf(granted: TenantScope, query: Query): TenantScope {
  const tenant = textOf(query, 'tenant')
  if (tenant === null) return granted
  if (granted !== null && !granted.includes(tenant))
    throw new WeirError('forbidden', `this key may not see tenant ${tenant}`)
  return [tenant]
}

function authorize({ analysts }: ApiOptions, request: FastifyRequest): { readonly scope: TenantScope } {
  const analyst = bearerOf(analysts, request.headers.authorization)
  if (analyst === null) throw new WeirError('unauthorized', 'no analyst has this key')
  return { scope: analyst.tenants.includes('*') ? null : analyst.tenants }
}
