import type { Decision } from './generated/decision.ts'
import type { RawEvent } from './generated/raw-event.ts'

/** What travels with an event through the flow, and stands in every decision about it. */
export type FlowFields = Pick<
  Decision,
  | 'tenant'
  | 'source'
  | 'eventKey'
  | 'eventKeyText'
  | 'type'
  | 'subject'
  | 'object'
  | 'version'
  | 'run'
  | 'rootEvent'
  | 'cause'
  | 'hops'
  | 'deliveryId'
  | 'orderingKey'
  | 'payloadDigest'
  | 'businessKey'
  | 'generation'
  | 'traceparent'
>

export function flowFieldsOf(event: RawEvent): FlowFields {
  const { tenant, source, eventKey, eventKeyText, type, subject, object, version, run, rootEvent, cause, hops } = event
  const { deliveryId, orderingKey, payloadDigest, businessKey, generation, traceparent } = event
  return {
    tenant,
    source,
    eventKey,
    eventKeyText,
    type,
    subject,
    object,
    version,
    run,
    rootEvent,
    cause,
    hops,
    deliveryId,
    orderingKey,
    payloadDigest,
    businessKey,
    generation,
    traceparent,
  }
}

type Unread = Omit<FlowFields, 'eventKey' | 'eventKeyText' | 'payloadDigest'> & { readonly admissionId: string }

/** The same of a record whose event cannot be read. */
export const unreadFlowFields: Unread = {
  tenant: '',
  source: '',
  type: 'unreadable',
  subject: null,
  object: null,
  version: null,
  run: null,
  rootEvent: null,
  cause: null,
  hops: 0,
  admissionId: '',
  deliveryId: '',
  orderingKey: '',
  businessKey: null,
  generation: 0,
  traceparent: null,
}
