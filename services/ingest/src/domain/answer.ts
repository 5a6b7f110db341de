import { errorCatalogue, type ErrorCode } from '@weir/core'
import type { RefusalCode } from './client-event.ts'

/** Who asks: a provider retries by its own rules and learns nothing from us; a client gets an exact answer. */
export type CallerKind = 'provider' | 'client'

/** Codes with which a request ends before an event was read. */
export type RequestFault =
  | RefusalCode
  | 'bad_signature'
  | 'unauthorized'
  | 'unknown_source'
  | 'not_found'
  | 'method_not_allowed'
  | 'too_large'
  | 'too_slow'
  | 'headers_too_large'
  | 'internal'

/** What became of one event. */
export type EventOutcome =
  /** In Kafka, acknowledged by all in-sync replicas. */
  | { readonly kind: 'accepted'; readonly deliveryId: string }
  /** A repeat, and this client wants the first answer again. */
  | { readonly kind: 'replayed'; readonly deliveryId: string }
  | { readonly kind: 'duplicate'; readonly originalDeliveryId: string }
  | { readonly kind: 'payload_mismatch'; readonly originalDeliveryId: string }
  | { readonly kind: 'in_progress'; readonly originalDeliveryId: string; readonly retryAfterSeconds: number }
  | { readonly kind: 'unavailable'; readonly retryAfterSeconds: number }
  | { readonly kind: 'refused'; readonly code: RequestFault; readonly detail: string | null }

export interface AnswerPlan {
  readonly status: number
  /** Code of the catalogue, or `ok`. */
  readonly code: ErrorCode | 'ok'
  readonly headers: Readonly<Record<string, string>>
}

/** The one table of answers. A provider never sees 409, 422 or 429: it would send again, or give up. */
export function answerFor(outcome: EventOutcome, caller: CallerKind): AnswerPlan {
  switch (outcome.kind) {
    case 'accepted':
      return ok({})
    case 'replayed':
      return ok({ 'idempotent-replayed': 'true' })
    case 'duplicate':
      return caller === 'provider' ? ok({}) : problem('duplicate_event_key')
    case 'payload_mismatch':
      return caller === 'provider' ? ok({}) : problem('payload_mismatch')
    case 'in_progress':
      return caller === 'provider'
        ? problem('temporarily_unavailable', retryAfter(outcome.retryAfterSeconds))
        : problem('request_in_progress', retryAfter(outcome.retryAfterSeconds))
    case 'unavailable':
      return problem('temporarily_unavailable', retryAfter(outcome.retryAfterSeconds))
    case 'refused':
      return problem(outcome.code, refusalHeaders(outcome.code))
  }
}

function ok(headers: Readonly<Record<string, string>>): AnswerPlan {
  return { status: 202, code: 'ok', headers }
}

function problem(code: ErrorCode, headers: Readonly<Record<string, string>> = {}): AnswerPlan {
  return { status: errorCatalogue[code].status, code, headers }
}

function retryAfter(seconds: number): Readonly<Record<string, string>> {
  return { 'retry-after': String(Math.max(1, Math.ceil(seconds))) }
}

function refusalHeaders(code: RequestFault): Readonly<Record<string, string>> {
  if (code === 'unauthorized') return { 'www-authenticate': 'Bearer' }
  if (code === 'method_not_allowed') return { allow: 'POST' }
  return {}
}

/**
 * The answer to several events at once: success only when every one of them is in Kafka, now or before. 202: all accepted now;
 * 207: some were there before; else the worst: unavailable, in progress, another payload, refused, or all of them repeats.
 */
export function answerForBatch(outcomes: readonly EventOutcome[]): AnswerPlan {
  const plans = outcomes.map(outcome => answerFor(outcome, 'client'))
  for (const kind of ['unavailable', 'in_progress', 'payload_mismatch', 'refused'] as const) {
    const at = outcomes.findIndex(outcome => outcome.kind === kind)
    const worst = plans[at]
    if (worst !== undefined) return worst
  }
  const repeat = plans.find(plan => plan.status !== 202)
  if (repeat === undefined) return ok({})
  return plans.every(plan => plan.status !== 202) ? repeat : { status: 207, code: 'ok', headers: {} }
}

/** Members of the answer's JSON that say what became of an event. */
export function outcomeFields(outcome: EventOutcome): Readonly<Record<string, string>> {
  switch (outcome.kind) {
    case 'accepted':
    case 'replayed':
      return { status: 'accepted', delivery_id: outcome.deliveryId }
    case 'duplicate':
    case 'payload_mismatch':
      return { original_delivery_id: outcome.originalDeliveryId, state: 'accepted' }
    case 'in_progress':
      return { original_delivery_id: outcome.originalDeliveryId, state: 'publishing' }
    case 'unavailable':
      return {}
    case 'refused':
      return outcome.detail === null ? {} : { detail: outcome.detail }
  }
}

/** RFC 9457 body. Never anything from inside: title and remedy stand in the catalogue. */
export function problemBody(
  plan: AnswerPlan & { readonly code: ErrorCode },
  correlationId: string,
  fields: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const { title, remedy } = errorCatalogue[plan.code]
  return {
    type: `https://weir.dev/problems/${plan.code.replaceAll('_', '-')}`,
    title,
    status: plan.status,
    detail: remedy,
    code: plan.code,
    correlation_id: correlationId,
    ...fields,
  }
}
