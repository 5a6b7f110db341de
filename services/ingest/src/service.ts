import { textFault, type Clock } from '@weir/core'
import type { RawEvent, Receipt } from '@weir/schemas'
import {
  answerFor,
  answerForBatch,
  outcomeFields,
  problemBody,
  type AnswerPlan,
  type CallerKind,
  type EventOutcome,
  type RequestFault,
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
import type { Answer, BrokenCode, IntakeRequest, Route } from './service/request.ts'

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

/** Stands for a caller whose name is not known. */
const nobody = '-'
/** Longest name of a source as addressed that a receipt keeps, bytes. */
const maxSourceBytes = 128

/** One event of a request; `event` is `null` where none could be read. */
interface Result {
  readonly outcome: EventOutcome
  readonly event: RawEvent | null
}

interface Addressed {
  readonly caller: CallerKind
  readonly tenant: string | null
  readonly source: string
  readonly credentialId: string | null
}

/** A request whose headers are known: read its body up to the limit and pass it on, or give the answer at once. */
export type Opened =
  | {
      readonly kind: 'read'
      readonly limitBytes: number
      readonly accept: (request: IntakeRequest) => Promise<Answer>
    }
  | { readonly kind: 'answer'; readonly answer: Answer }

/** Every request ends here in an answer and a receipt. */
export class IngestService {
  readonly #options: IngestOptions

  constructor(options: IngestOptions) {
    this.#options = options
  }

  /** Finds the source, or the client by its key: a body nobody has a right to send is not read. */
  open(route: Route, request: IntakeRequest): Opened {
    const { sources, clients } = this.#options
    switch (route.kind) {
      case 'webhook': {
        const source = sources.get(route.source)
        if (source === undefined) return this.#turnedAway('unknown_source', route, request)
        const accept = async (read: IntakeRequest): Promise<Answer> => await this.#webhook(source, read)
        return { kind: 'read', limitBytes: source.maxBodyBytes, accept }
      }
      case 'events': {
        const client = clients(request.headers)
        if (client === null) return this.#turnedAway('unauthorized', route, request)
        const accept = async (read: IntakeRequest): Promise<Answer> => await this.#events(client, read)
        return { kind: 'read', limitBytes: client.maxBodyBytes, accept }
      }
      case 'elsewhere':
        return this.#turnedAway('not_found', route, request)
    }
  }

  /** A request that broke before its body was read, or was turned away: it gets its answer and leaves its receipt. */
  broken(code: BrokenCode, route: Route, request: IntakeRequest): Answer {
    const addressed = this.#addressed(route, request)
    if (code === 'temporarily_unavailable') {
      const outcome: EventOutcome = { kind: 'unavailable', retryAfterSeconds: 1 }
      this.#note(addressed, request, { outcome, event: null })
      return this.#answer(addressed, request, answerFor(outcome, addressed.caller), {})
    }
    const limitBytes = code === 'too_large' ? this.#limitOf(route, request) : null
    return this.#refuse(addressed, request, code, limitBytes === null ? null : `The limit is ${limitBytes} bytes.`)
  }

  /** verify (raw bytes) → key → publish to weir.raw → answer. */
  async #webhook(source: WebhookSource, request: IntakeRequest): Promise<Answer> {
    const { metrics, clock, providerIntake, newId, faultPoint } = this.#options
    const { tenant, name } = source
    const addressed: Addressed = { caller: 'provider', tenant, source: name, credentialId: null }
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
    this.#note({ ...addressed, credentialId }, request, { outcome, event })
    faultPoint('ingest.before-answer')
    return this.#answer(addressed, request, answerFor(outcome, 'provider'), {
      ...outcomeFields(outcome),
      ...keyOf(event),
    })
  }

  /** key → edge claim → publish → answer, for each event of the request. */
  async #events(client: ApiClient, request: IntakeRequest): Promise<Answer> {
    const { tenant, name } = client
    const addressed: Addressed = { caller: 'client', tenant, source: name, credentialId: name }
    const read = readClientRequest(client, request.body, request.headers)
    if (read.kind === 'refused') return this.#refuse(addressed, request, read.code, read.detail)
    const items = read.kind === 'single' ? [read.item] : read.items
    const results = await Promise.all(items.map(async item => await this.#submit(client, item, request)))
    const answer = this.#finish(addressed, request, results, read.kind === 'batch')
    this.#options.faultPoint('ingest.before-answer')
    return answer
  }

  async #submit(client: ApiClient, item: ReadEvent, request: IntakeRequest): Promise<Result> {
    if (item.kind === 'refused') return { outcome: item, event: null }
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
    return { outcome: await clientIntake.submit({ client, event, digest: edgeDigest(draft) }), event }
  }

  #finish(addressed: Addressed, request: IntakeRequest, results: readonly Result[], isBatch: boolean): Answer {
    for (const result of results) this.#note(addressed, request, result)
    const [only] = results
    if (!isBatch && only !== undefined) {
      const plan = answerFor(only.outcome, 'client')
      return this.#answer(addressed, request, plan, resultFields(only))
    }
    const items = results.map(result => ({ code: answerFor(result.outcome, 'client').code, ...resultFields(result) }))
    const plan = answerForBatch(results.map(result => result.outcome))
    return this.#answer(addressed, request, plan, { results: items })
  }

  #addressed(route: Route, request: IntakeRequest): Addressed {
    const { sources, clients } = this.#options
    if (route.kind === 'webhook') {
      const tenant = sources.get(route.source)?.tenant ?? null
      return { caller: 'provider', tenant, source: route.source, credentialId: null }
    }
    const client = route.kind === 'events' ? clients(request.headers) : null
    const caller = route.kind === 'events' ? 'client' : 'provider'
    return client === null
      ? { caller, tenant: null, source: nobody, credentialId: null }
      : { caller, tenant: client.tenant, source: client.name, credentialId: client.name }
  }

  #limitOf(route: Route, request: IntakeRequest): number | null {
    const { sources, clients } = this.#options
    if (route.kind === 'webhook') return sources.get(route.source)?.maxBodyBytes ?? null
    return route.kind === 'events' ? (clients(request.headers)?.maxBodyBytes ?? null) : null
  }

  #turnedAway(code: 'unknown_source' | 'unauthorized' | 'not_found', route: Route, request: IntakeRequest): Opened {
    return { kind: 'answer', answer: this.#refuse(this.#addressed(route, request), request, code) }
  }

  #refuse(addressed: Addressed, request: IntakeRequest, code: RequestFault, detail: string | null = null): Answer {
    const outcome: EventOutcome = { kind: 'refused', code, detail }
    this.#note(addressed, request, { outcome, event: null })
    return this.#answer(addressed, request, answerFor(outcome, addressed.caller), outcomeFields(outcome))
  }

  #answer(
    { caller, tenant, source }: Addressed,
    request: IntakeRequest,
    plan: AnswerPlan,
    fields: Readonly<Record<string, unknown>>,
  ): Answer {
    const { correlationId } = request
    // A name that is not configured is the sender's own: it must not become a label.
    this.#options.metrics.answers.inc({ caller, source: tenant === null ? nobody : source, code: plan.code })
    if (plan.code === 'ok') return { plan, body: { ...fields, correlation_id: correlationId } }
    return { plan, body: problemBody({ ...plan, code: plan.code }, correlationId, fields) }
  }

  #note(addressed: Addressed, request: IntakeRequest, { outcome, event }: Result): void {
    const { tenant, source, credentialId, caller } = addressed
    const plan = answerFor(outcome, caller)
    this.#options.receipts.note({
      receiptId: request.correlationId,
      tenant,
      source: tenant === null && textFault(source, maxSourceBytes) !== null ? nobody : source,
      eventKey: event?.eventKey ?? null,
      eventKeyText: event?.eventKeyText ?? null,
      ...receiptOutcome(outcome),
      reason: plan.code,
      status: plan.status,
      sizeBytes: request.sizeBytes,
      credentialId,
      run: event?.run ?? null,
      traceparent: request.traceparent,
    })
  }
}

/** The event's identity, so that a caller can ask why by it. */
function keyOf(event: RawEvent): Readonly<Record<string, string>> {
  return { event_key: event.eventKey.toString('hex') }
}

function resultFields({ outcome, event }: Result): Readonly<Record<string, string>> {
  return event === null ? outcomeFields(outcome) : { ...outcomeFields(outcome), ...keyOf(event) }
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
