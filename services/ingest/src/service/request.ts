import type { ErrorCode } from '@weir/core'
import type { AnswerPlan } from '../domain/answer.ts'
import type { HeaderMap } from '../domain/header-map.ts'

/** Where a request is addressed to. */
export type Route =
  | { readonly kind: 'webhook'; readonly source: string }
  | { readonly kind: 'events' }
  /** No address of ingest, or a request that broke before its address was read. */
  | { readonly kind: 'elsewhere' }

/** A request, whatever transport brought it. */
export interface IntakeRequest {
  /** Empty until it is read, and when it is not read to its end. */
  readonly body: Buffer
  /** Bytes of the body that were read. */
  readonly sizeBytes: number
  readonly headers: HeaderMap
  /** UUIDv7: named in the answer and in the receipt. */
  readonly correlationId: string
  readonly traceparent: string | null
  readonly tracestate: string | null
}

export interface Answer {
  readonly plan: AnswerPlan
  readonly body: Readonly<Record<string, unknown>>
}

/** Why a request ended before its body was complete. */
export type BrokenCode = Extract<
  ErrorCode,
  | 'too_large'
  | 'too_slow'
  | 'malformed'
  | 'not_found'
  | 'method_not_allowed'
  | 'internal'
  | 'headers_too_large'
  | 'temporarily_unavailable'
>
