import type { ErrorCode } from '@weir/core'
import type { AnswerPlan } from '../domain/answer.ts'
import type { HeaderMap } from '../domain/header-map.ts'

/** A request whose body is read, whatever transport brought it. */
export interface IntakeRequest {
  readonly body: Buffer
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
