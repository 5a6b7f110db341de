import {
  eventKey,
  eventKeyText,
  keyText,
  lengthPrefixed,
  orderingKeyText,
  sha256,
  textFault,
  type BusinessKeyRule,
  type EventPaths,
  type TextFault,
} from '@weir/core'
import type { RawEvent, RawEventBusinessKey, RawEventHeader } from '@weir/schemas'
import { pointerTokens } from './json-pointer.ts'
import { scalarAt, type JsonView } from './json-body.ts'

/** Longest values that are taken from outside, bytes of UTF-8. */
export const maxBytes = { eventId: 1024, type: 256, text: 512, version: 128, contentType: 256 } as const

/** How the event id was found. */
export type KeyOrigin = 'header' | 'provider' | 'body_path' | 'cloudevents' | 'fingerprint' | 'body_digest'

/** An event as read from a request, before it has a delivery id. All texts are checked. */
export interface EventDraft {
  readonly eventId: string
  readonly keyOrigin: KeyOrigin
  readonly type: string
  readonly subject: string | null
  readonly object: string | null
  readonly version: string | null
  readonly run: string | null
  readonly rootEvent: string | null
  readonly cause: string | null
  readonly hops: number
  readonly businessKey: RawEventBusinessKey | null
  /** The provider does not sign the id: the body's digest is a second key. */
  readonly idUnsigned: boolean
  readonly contentType: string | null
  readonly data: Buffer
  readonly headers: readonly RawEventHeader[]
  readonly eventTimeMs: number | null
  readonly eventTimeSigned: boolean
}

/** What the edge adds to a draft. */
export interface DeliveryFacts {
  readonly tenant: string
  readonly source: string
  readonly credentialId: string
  readonly deliveryId: string
  readonly receivedAtMs: number
  readonly traceparent: string | null
  readonly tracestate: string | null
}

/** The message for `weir.raw`. */
export function toRawEvent(draft: EventDraft, facts: DeliveryFacts): RawEvent {
  const { eventId, idUnsigned, ...event } = draft
  const keyAsText = eventKeyText(facts.tenant, facts.source, eventId)
  const payloadDigest = sha256(draft.data)
  return {
    ...event,
    ...facts,
    eventId,
    eventKey: eventKey(facts.tenant, facts.source, eventId),
    eventKeyText: keyAsText,
    orderingKey: draft.object === null ? keyAsText : orderingKeyText(facts.tenant, draft.object),
    secondKey: idUnsigned ? payloadDigest : null,
    payloadDigest,
    copies: 1,
    attempt: 0,
    generation: 0,
    replayId: null,
  }
}

/** Digest by which the edge tells a client's repeat from another event under the same key: what the client says of the event, not its context. */
export function edgeDigest(draft: EventDraft): Buffer {
  const parts = [draft.type, draft.subject, draft.object, draft.version, draft.contentType]
  return sha256(lengthPrefixed([...parts.map(part => part ?? ''), draft.data]))
}

/** Configured pointers, split once at start. */
export interface PreparedPaths {
  readonly subject: readonly string[] | null
  readonly object: readonly string[] | null
  readonly version: readonly string[] | null
  readonly run: readonly string[] | null
  readonly eventTime: readonly string[] | null
}

export function preparePaths(paths: EventPaths): PreparedPaths {
  const tokens = (pointer: string | null): readonly string[] | null =>
    pointer === null ? null : pointerTokens(pointer)
  return {
    subject: tokens(paths.subject),
    object: tokens(paths.object),
    version: tokens(paths.version),
    run: tokens(paths.run),
    eventTime: tokens(paths.eventTime),
  }
}

export interface PreparedBusinessKey {
  readonly space: string
  readonly paths: readonly (readonly string[])[]
}

export function prepareBusinessKey(rule: BusinessKeyRule | null): PreparedBusinessKey | null {
  return rule === null ? null : { space: rule.space, paths: rule.paths.map(pointerTokens) }
}

/** The text at a configured path, or the fault that keeps it from being stored. */
export type PathText = { readonly text: string | null; readonly fault: TextFault | null }

export function pathText(view: JsonView | null, tokens: readonly string[] | null, limitBytes: number): PathText {
  if (view === null || tokens === null) return { text: null, fault: null }
  const scalar = scalarAt(view, tokens)
  if (scalar.kind !== 'text' || scalar.text === '') return { text: null, fault: null }
  const fault = textFault(scalar.text, limitBytes)
  return { text: fault === null ? scalar.text : null, fault }
}

/** An event without one of the values has no business key. */
export function businessKeyOf(view: JsonView | null, rule: PreparedBusinessKey | null): RawEventBusinessKey | null {
  if (view === null || rule === null) return null
  const values: string[] = []
  for (const tokens of rule.paths) {
    const { text } = pathText(view, tokens, maxBytes.text)
    if (text === null) return null
    values.push(text)
  }
  return { space: rule.space, value: keyText(values) }
}
