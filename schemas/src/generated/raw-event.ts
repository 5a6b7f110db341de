// Made from avro/raw-event.avsc by tools/generate.ts; do not edit.

/** A second unique claim in a key space of the tenant: two sources may report one action. */
export interface RawEventBusinessKey {
  /** Name of the key space, from the configuration. */
  readonly space: string
  /** Value cut from the event, at most 512 bytes. */
  readonly value: string
}

/** One header of the original request or record, as received. */
export interface RawEventHeader {
  /** Lower-case name. */
  readonly name: string
  /** Value bytes as received. */
  readonly value: Buffer
}

/** One verified delivery as it came in, repeats too. Written to weir.raw; weir.events holds the same bytes once per event. */
export interface RawEvent {
  /** Tenant the event belongs to. */
  readonly tenant: string
  /** Source it came through, as named in weir.yaml. */
  readonly source: string
  /** SHA-256 of the length-prefixed (tenant, source, event id): the event's identity. */
  readonly eventKey: Buffer
  /** Readable form of the event key, bounded to 512 bytes; for people, never for comparing. */
  readonly eventKeyText: string
  /** The provider's or client's event id, as text. */
  readonly eventId: string
  /** How the event id was found: header, provider, body_path, cloudevents or fingerprint. */
  readonly keyOrigin: string
  /** UUIDv7 of this accepted delivery; of a replay UUIDv5 of replay id and original coordinate. */
  readonly deliveryId: string
  /** Tenant and object path, else the event key text: events of one ordering key keep their order. */
  readonly orderingKey: string
  /** Event type, for example `pull_request.opened`. */
  readonly type: string
  /** What the event is about (an account, an order), so that a question can start from it. */
  readonly subject: null | string
  /** The object whose order and version matter. */
  readonly object: null | string
  /** Version of that object: a number or an RFC 3339 time, as text. */
  readonly version: null | string
  /** Agent run the event belongs to. */
  readonly run: null | string
  /** Event key text of the first event of the chain. */
  readonly rootEvent: null | string
  /** Id of the direct cause (an event key text or a decision id). */
  readonly cause: null | string
  /** How many events lie between the root and this one. */
  readonly hops: number
  /** Business key, if the source names one. */
  readonly businessKey: null | RawEventBusinessKey
  /** SHA-256 of the signed bytes where the provider does not sign its event id. */
  readonly secondKey: null | Buffer
  /** SHA-256 of `data`. */
  readonly payloadDigest: Buffer
  /** Content-Type as received. */
  readonly contentType: null | string
  /** The body as received, byte for byte; may be empty. */
  readonly data: Buffer
  /** Allow-listed request headers; never a signature or a credential. */
  readonly headers: readonly RawEventHeader[]
  /** When the edge had the whole request, milliseconds since 1970. */
  readonly receivedAtMs: number
  /** The provider's time of the event, if it gave one. */
  readonly eventTimeMs: null | number
  /** Whether that time is covered by the provider's signature. */
  readonly eventTimeSigned: boolean
  /** How many identical deliveries this record stands for (storms are counted, not multiplied). */
  readonly copies: number
  /** Which secret or API key verified the delivery. */
  readonly credentialId: null | string
  /** Delivery attempt of the sender, if it says so; else 0. */
  readonly attempt: number
  /** 0 for the first admission; a replay counts up. For display. */
  readonly generation: number
  /** Replay that produced this record. */
  readonly replayId: null | string
  /** W3C trace context. */
  readonly traceparent: null | string
  /** W3C trace state. */
  readonly tracestate: null | string
}

export const rawEventSchema = {"type":"record","name":"RawEvent","namespace":"dev.weir","doc":"One verified delivery as it came in, repeats too. Written to weir.raw; weir.events holds the same bytes once per event.","fields":[{"name":"tenant","type":"string","doc":"Tenant the event belongs to."},{"name":"source","type":"string","doc":"Source it came through, as named in weir.yaml."},{"name":"eventKey","type":"bytes","doc":"SHA-256 of the length-prefixed (tenant, source, event id): the event's identity."},{"name":"eventKeyText","type":"string","doc":"Readable form of the event key, bounded to 512 bytes; for people, never for comparing."},{"name":"eventId","type":"string","doc":"The provider's or client's event id, as text."},{"name":"keyOrigin","type":"string","doc":"How the event id was found: header, provider, body_path, cloudevents or fingerprint."},{"name":"deliveryId","type":"string","doc":"UUIDv7 of this accepted delivery; of a replay UUIDv5 of replay id and original coordinate."},{"name":"orderingKey","type":"string","doc":"Tenant and object path, else the event key text: events of one ordering key keep their order."},{"name":"type","type":"string","doc":"Event type, for example `pull_request.opened`."},{"name":"subject","type":["null","string"],"doc":"What the event is about (an account, an order), so that a question can start from it.","default":null},{"name":"object","type":["null","string"],"doc":"The object whose order and version matter.","default":null},{"name":"version","type":["null","string"],"doc":"Version of that object: a number or an RFC 3339 time, as text.","default":null},{"name":"run","type":["null","string"],"doc":"Agent run the event belongs to.","default":null},{"name":"rootEvent","type":["null","string"],"doc":"Event key text of the first event of the chain.","default":null},{"name":"cause","type":["null","string"],"doc":"Id of the direct cause (an event key text or a decision id).","default":null},{"name":"hops","type":"int","doc":"How many events lie between the root and this one.","default":0},{"name":"businessKey","type":["null",{"type":"record","name":"BusinessKey","doc":"A second unique claim in a key space of the tenant: two sources may report one action.","fields":[{"name":"space","type":"string","doc":"Name of the key space, from the configuration."},{"name":"value","type":"string","doc":"Value cut from the event, at most 512 bytes."}]}],"doc":"Business key, if the source names one.","default":null},{"name":"secondKey","type":["null","bytes"],"doc":"SHA-256 of the signed bytes where the provider does not sign its event id.","default":null},{"name":"payloadDigest","type":"bytes","doc":"SHA-256 of `data`."},{"name":"contentType","type":["null","string"],"doc":"Content-Type as received.","default":null},{"name":"data","type":"bytes","doc":"The body as received, byte for byte; may be empty."},{"name":"headers","type":{"type":"array","items":{"type":"record","name":"Header","doc":"One header of the original request or record, as received.","fields":[{"name":"name","type":"string","doc":"Lower-case name."},{"name":"value","type":"bytes","doc":"Value bytes as received."}]}},"doc":"Allow-listed request headers; never a signature or a credential.","default":[]},{"name":"receivedAtMs","type":"long","doc":"When the edge had the whole request, milliseconds since 1970."},{"name":"eventTimeMs","type":["null","long"],"doc":"The provider's time of the event, if it gave one.","default":null},{"name":"eventTimeSigned","type":"boolean","doc":"Whether that time is covered by the provider's signature.","default":false},{"name":"copies","type":"int","doc":"How many identical deliveries this record stands for (storms are counted, not multiplied).","default":1},{"name":"credentialId","type":["null","string"],"doc":"Which secret or API key verified the delivery.","default":null},{"name":"attempt","type":"int","doc":"Delivery attempt of the sender, if it says so; else 0.","default":0},{"name":"generation","type":"int","doc":"0 for the first admission; a replay counts up. For display.","default":0},{"name":"replayId","type":["null","string"],"doc":"Replay that produced this record.","default":null},{"name":"traceparent","type":["null","string"],"doc":"W3C trace context.","default":null},{"name":"tracestate","type":["null","string"],"doc":"W3C trace state.","default":null}]} as const
