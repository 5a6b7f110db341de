import { isUuid, textFault, WeirError, type AgentConfiguration, type Log } from '@weir/core'
import { answerProblems, bearerOf, invalidValue } from '@weir/runtime'
import Fastify, { type FastifyRequest } from 'fastify'
import { z } from 'zod'
import { isoTime } from '../domain/cloud-event.ts'
import type { FoundDelivery } from '../ports.ts'
import type { ReportIntake, ReportSaid } from '../service/report-intake.ts'

export interface ApiOptions {
  readonly host: string
  readonly port: number
  readonly agents: readonly AgentConfiguration[]
  readonly intake: ReportIntake
  readonly log: Log
}

const maxReports = 500
const maxBodyBytes = 512 * 1_024
const maxDetailBytes = 2_048

const reportSchema = z.strictObject({
  decision_id: z.string().refine(isUuid, 'not a UUID in lower case'),
  attempt: z.int().min(0),
  status: z.enum(['completed', 'failed']),
  effects: z.enum(['none', 'unknown', 'done']).optional(),
  detail: z
    .string()
    .refine(
      text => text === '' || textFault(text, maxDetailBytes) === null,
      'longer than 2 KiB, or with control characters',
    )
    .optional(),
})
const bodySchema = z.union([reportSchema, z.strictObject({ outcomes: z.array(reportSchema).min(1).max(maxReports) })])

/** The agents' API. Every request needs the agent's own key; an agent sees and reports on its own deliveries and no others. */
export async function startApi(options: ApiOptions): Promise<{ readonly port: number; close(): Promise<void> }> {
  const app = Fastify({ bodyLimit: maxBodyBytes, requestTimeout: 30_000 })
  answerProblems(app, options.log)
  app.post('/v1/outcomes', async (request, reply) => {
    const agent = authorize(options, request)
    const { said, isSingle } = saidIn(request.body)
    const answers = await options.intake.take(agent.name, said)
    const results = said.map(({ decisionId, attempt }, i) => {
      const answer = answers[i] ?? { kind: 'unknown' }
      const about = { decision_id: decisionId, attempt }
      return answer.kind === 'accepted'
        ? { ...about, status: 202, state: answer.state }
        : { ...about, status: 404, detail: unknownDelivery }
    })
    if (!isSingle) return await reply.status(200).send({ outcomes: results })
    if (results[0]?.status !== 202) {
      throw new WeirError('not_found', `agent ${agent.name} reports on what it did not get`, {
        publicDetail: unknownDelivery,
      })
    }
    return await reply.status(202).send(results[0])
  })
  app.get('/v1/deliveries/:id', async (request, reply) => {
    const agent = authorize(options, request)
    const { id } = request.params as { readonly id: string }
    if (!isUuid(id)) throw invalidValue('the decision id is not a UUID in lower case')
    return await reply.send(describe(await options.intake.deliveryOf(agent.name, id)))
  })
  await app.listen({ host: options.host, port: options.port })
  const address = app.server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : options.port,
    close: async () => await app.close(),
  }
}

const unknownDelivery =
  'This agent was not given this attempt of this delivery. Send decision_id and attempt as in the headers ce_decisionid and ce_attempt of the message; an agent with `outcomes: off` has nothing to report.'

function saidIn(body: unknown): { readonly said: readonly ReportSaid[]; readonly isSingle: boolean } {
  const parsed = bodySchema.safeParse(body)
  if (!parsed.success) throw invalidValue(faultOf(parsed.error))
  const isSingle = !('outcomes' in parsed.data)
  const reports = 'outcomes' in parsed.data ? parsed.data.outcomes : [parsed.data]
  const said = reports.map(({ decision_id: decisionId, attempt, status, effects, detail = null }): ReportSaid => {
    if (status === 'failed' && effects === undefined) {
      throw invalidValue('effects is missing: say none, unknown or done with a failure; only none is delivered again')
    }
    if (status === 'completed' && effects !== undefined) throw invalidValue('effects belongs to a failure only')
    return { decisionId, attempt, status, effects: effects ?? '', detail }
  })
  return { said, isSingle }
}

function faultOf(error: z.ZodError): string {
  const issues = error.issues.flatMap(issue =>
    issue.code === 'invalid_union' ? (issue.errors[0] ?? [issue]) : [issue],
  )
  const [first] = issues
  if (first === undefined) return 'the body is not a report'
  const place = first.path.map(String).join('.')
  return place === '' ? first.message : `${place}: ${first.message}`
}

function authorize({ agents }: ApiOptions, request: FastifyRequest): AgentConfiguration {
  const agent = bearerOf(agents, request.headers.authorization)
  if (agent === null) throw new WeirError('unauthorized', 'no agent has this key')
  return agent
}

function describe(delivery: FoundDelivery) {
  const { decisionId, attempt, state, deliveries, maxAttempts, overdueAtMs, parkedCode } = delivery
  return {
    decision_id: decisionId,
    attempt,
    state,
    deliveries,
    max_attempts: maxAttempts,
    report_by: state === 'in_progress' ? isoTime(overdueAtMs) : null,
    parked_reason: parkedCode,
  }
}
