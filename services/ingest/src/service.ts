import { eventKey, eventKeyText, type Clock } from '@weir/core'
import type { Receipt } from '@weir/schemas'
import {
  answerFor,
  answerForBatch,
  outcomeFields,
  problemBody,
  type AnswerPlan,
  type CallerKind,
  type EventOutcome,
} from './domain/answer.ts'
import type { ClientLookup } from './domain/api-key.ts'
import type { ApiClient, ReadEvent } from './domain/client-event.ts'
import { readClientRequest } from './domain/client-request.ts'
import { edgeDigest, toRawEvent, type EventDraft } from './domain/event-draft.ts'
import { verify } from './domain/providers/verify.ts'
import { faultHeader, unparsableType, webhookEvent } from './domain/webhook-event.ts'
import type { WebhookSource } from './domain/webhook-source.ts'
import type { IngestMetrics } from './metrics.ts'
import type { FaultPoint, NewId } from './ports.ts'
import type { ClientIntake } from './service/client-intake.ts'
import type { ProviderIntake } from './service/provider-intake.ts'
import type { ReceiptBook } from './service/receipts.ts'
import type { Answer, BrokenCode, IntakeRequest } from './service/request.ts'

export interface IngestOptions {
  readonly sources: ReadonlyMap<string, WebhookSource>
  readonly clients: ClientLookup
  readonly providerIntake: ProviderIntake
  readonly clientIntake: ClientIntake
  readonly receipts: ReceiptBook
  readonly metrics: IngestMetrics
  readonly clock: Clock
  readonly newId: NewId
  readonly faultPoint: FaultPoint
}

interface Addressed {
  readonly caller: CallerKind
  readonly tenant: string | null
  readonly source: string
  readonly credentialId: string | null
}

/** Every request ends here in an answer and a receipt. */
export class IngestService {
  readonly #options: IngestOptions

  constructor(options: IngestOptions) {
    this.#options = options
  }

  /** verify (raw bytes) → key → publish to weir.raw → answer. */
  async webhook(name: string, request: IntakeRequest): Promise<Answer> {
    const { sources, metrics, clock, providerIntake, newId, faultPoint } = this.#options
    const source = sources.get(name)
    if (source === undefined) return this.#refuse(unknown(name), request, 'unknown_source')
    const { tenant } = source
    const addressed: Addressed = { caller: 'provider', tenant, source: name, credentialId: null }
    if (request.body.length > source.maxBodyBytes) {
      return this.#refuse(addressed, request, 'too_large', `The limit is ${source.maxBodyBytes} bytes.`)
    }
    const receivedAtMs = clock.nowMs()
    const verification = verify(source.verifier, request.body, request.headers, receivedAtMs)
    if (verification.kind === 'refused') {
      metrics.refusals.inc({ source: name, reason: verification.reason })
      return this.#refuse(addressed, request, 'bad_signature')
    }
    const { credentialId } = verification
    metrics.verified.inc({ source: name, credential: credentialId })
    const draft = webhookEvent(source, request.body, request.headers)
    if (draft.type === unparsableType) metrics.unparsable.inc({ source: name, fault: faultOf(draft) })
    const { traceparent, tracestate } = request
    const event = toRawEvent(draft, {
      tenant,
      source: name,
      credentialId,
      deliveryId: newId(),
      receivedAtMs,
      traceparent,
      tracestate,
    })
    const outcome = await providerIntake.deliver(event)
    this.#note({ ...addressed, credentialId }, request, { outcome, draft })
    faultPoint('ingest.before-answer')
    return this.#answer(addressed, request, answerFor(outcome, 'provider'), outcomeFields(outcome))
  }

  /** authenticate → key → edge claim → publish → answer. */
  async events(request: IntakeRequest): Promise<Answer> {
    const client = this.#options.clients(request.headers)
    if (client === null) return this.#refuse({ ...unknown('-'), caller: 'client' }, request, 'unauthorized')
    const { tenant, name } = client
    const addressed: Addressed = { caller: 'client', tenant, source: name, credentialId: name }
    if (request.body.length > client.maxBodyBytes) {
      return this.#refuse(addressed, request, 'too_large', `The limit is ${client.maxBodyBytes} bytes.`)
    }
    const read = readClientRequest(client, request.body, request.headers)
    if (read.kind === 'refused') {
      const { code, detail } = read
      return this.#finish(addressed, request, [{ outcome: { kind: 'refused', code, detail }, draft: null }])
    }
    const items = read.kind === 'single' ? [read.item] : read.items
    const results = await Promise.all(items.map(async item => await this.#submit(client, item, request)))
    const answer = this.#finish(addressed, request, results, read.kind === 'batch')
    this.#options.faultPoint('ingest.before-answer')
    return answer
  }

  /** A request that broke before its body was read, or was turned away: it gets its answer and leaves its receipt. */
  broken(code: BrokenCode, where: { readonly source: string | null }, request: IntakeRequest): Answer {
    const { sources } = this.#options
    const source = where.source === null ? undefined : sources.get(where.source)
    const addressed = { ...unknown(source?.name ?? '-'), tenant: source?.tenant ?? null }
    if (code !== 'temporarily_unavailable') return this.#refuse(addressed, request, code)
    const outcome: EventOutcome = { kind: 'unavailable', retryAfterSeconds: 1 }
    this.#note(addressed, request, { outcome, draft: null })
    return this.#answer(addressed, request, answerFor(outcome, addressed.caller), {})
  }

  async #submit(
    client: ApiClient,
    item: ReadEvent,
    request: IntakeRequest,
  ): Promise<{ outcome: EventOutcome; draft: EventDraft | null }> {
    if (item.kind === 'refused')
      return { outcome: { kind: 'refused', code: item.code, detail: item.detail }, draft: null }
    const { newId, clock, clientIntake } = this.#options
    const { draft } = item
    const { traceparent, tracestate } = request
    const event = toRawEvent(draft, {
      tenant: client.tenant,
      source: client.name,
      credentialId: client.name,
      deliveryId: newId(),
      receivedAtMs: clock.nowMs(),
      traceparent,
      tracestate,
    })
    return { outcome: await clientIntake.submit({ client, event, digest: edgeDigest(draft) }), draft }
  }

  #finish(
    addressed: Addressed,
    request: IntakeRequest,
    results: readonly { readonly outcome: EventOutcome; readonly draft: EventDraft | null }[],
    isBatch = false,
  ): Answer {
    for (const result of results) this.#note(addressed, request, result)
    const outcomes = results.map(result => result.outcome)
    const [only] = outcomes
    if (!isBatch && only !== undefined) {
      return this.#answer(addressed, request, answerFor(only, 'client'), outcomeFields(only))
    }
    const items = outcomes.map(outcome => {
      const plan = answerFor(outcome, 'client')
      return { code: plan.code, ...outcomeFields(outcome) }
    })
    return this.#answer(addressed, request, answerForBatch(outcomes), { results: items })
  }

  #refuse(
    addressed: Addressed,
    request: IntakeRequest,
    code: BrokenCode | 'bad_signature' | 'unauthorized' | 'unknown_source',
    detail: string | null = null,
  ): Answer {
    if (code === 'temporarily_unavailable') throw new TypeError('an unavailable answer is no refusal')
    const outcome: EventOutcome = { kind: 'refused', code, detail }
    this.#note(addressed, request, { outcome, draft: null })
    return this.#answer(addressed, request, answerFor(outcome, addressed.caller), outcomeFields(outcome))
  }

  #answer(
    { caller, source }: Addressed,
    request: IntakeRequest,
    plan: AnswerPlan,
    fields: Readonly<Record<string, unknown>>,
  ): Answer {
    const { correlationId } = request
    this.#options.metrics.answers.inc({ caller, source, code: plan.code })
    if (plan.code === 'ok') return { plan, body: { ...fields, correlation_id: correlationId } }
    return { plan, body: problemBody({ ...plan, code: plan.code }, correlationId, fields) }
  }

  #note(
    addressed: Addressed,
    request: IntakeRequest,
    { outcome, draft }: { readonly outcome: EventOutcome; readonly draft: EventDraft | null },
  ): void {
    const { tenant, source, credentialId, caller } = addressed
    const plan = answerFor(outcome, caller)
    const key = draft === null || tenant === null ? null : { tenant, source, eventId: draft.eventId }
    this.#options.receipts.note({
      receiptId: request.correlationId,
      tenant,
      source,
      eventKey: key === null ? null : eventKey(key.tenant, key.source, key.eventId),
      eventKeyText: key === null ? null : eventKeyText(key.tenant, key.source, key.eventId),
      ...receiptOutcome(outcome),
      reason: plan.code,
      status: plan.status,
      sizeBytes: request.body.length,
      credentialId,
      run: draft?.run ?? null,
      traceparent: request.traceparent,
    })
  }
}

function unknown(name: string): Addressed {
  return { caller: 'provider', tenant: null, source: name.slice(0, 64), credentialId: null }
}

function faultOf(draft: EventDraft): string {
  return draft.headers.find(header => header.name === faultHeader)?.value.toString('utf8') ?? 'unknown'
}

function receiptOutcome(outcome: EventOutcome): Pick<Receipt, 'outcome' | 'deliveryId' | 'originalDeliveryId'> {
  switch (outcome.kind) {
    case 'accepted':
    case 'replayed':
      return { outcome: 'accepted', deliveryId: outcome.deliveryId, originalDeliveryId: null }
    case 'duplicate':
    case 'payload_mismatch':
    case 'in_progress':
      return { outcome: outcome.kind, deliveryId: null, originalDeliveryId: outcome.originalDeliveryId }
    case 'unavailable':
      return { outcome: 'unavailable', deliveryId: null, originalDeliveryId: null }
    case 'refused':
      return { outcome: 'rejected', deliveryId: null, originalDeliveryId: null }
  }
}
