import { textFault, type ErrorCode, type TextFault } from '@weir/core'
import type { EventDraft, PreparedBusinessKey, PreparedPaths } from './event-draft.ts'
import type { JsonFault } from './json-body.ts'

/** An API client of weir.yaml with its pointers made ready. */
export interface ApiClient {
  readonly name: string
  readonly tenant: string
  readonly onDuplicate: 'conflict' | 'replay'
  readonly windowSeconds: number
  readonly maxBodyBytes: number
  readonly paths: PreparedPaths
  readonly businessKey: PreparedBusinessKey | null
}

export type RefusalCode = Extract<
  ErrorCode,
  'malformed' | 'missing_event_key' | 'invalid_value' | 'unsupported_media_type' | 'forbidden'
>

/** `detail` is for the caller: it names the field and the rule, never anything inside Weir. */
export interface Refusal {
  readonly kind: 'refused'
  readonly code: RefusalCode
  readonly detail: string
}

export type ReadEvent = { readonly kind: 'event'; readonly draft: EventDraft } | Refusal

export type ClientRequest =
  | { readonly kind: 'single'; readonly item: ReadEvent }
  | { readonly kind: 'batch'; readonly items: readonly ReadEvent[] }
  | Refusal

/** Most events one batch may hold. */
export const maxBatchItems = 100

export const jsonFaultText: Readonly<Record<JsonFault, string>> = {
  empty: 'The body is empty',
  too_deep: 'The JSON is nested deeper than 64 levels',
  not_utf8: 'The body is not UTF-8',
  not_json: 'The body is not JSON',
}

export function refusal(code: RefusalCode, detail: string): Refusal {
  return { kind: 'refused', code, detail }
}

const faultText: Readonly<Record<TextFault, string>> = {
  empty: 'is empty',
  too_long: 'is too long',
  nul: 'contains a NUL character',
  control: 'contains a control character',
  ill_formed: 'contains half of a surrogate pair',
}

/** `null` when the text may be stored; else the refusal that names field and limit. */
export function textRefusal(field: string, text: string, limitBytes: number): Refusal | null {
  const fault = textFault(text, limitBytes)
  return fault === null
    ? null
    : refusal('invalid_value', `\`${field}\` ${faultText[fault]}; it must be 1 to ${limitBytes} bytes of text`)
}
