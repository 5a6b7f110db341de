// Made from avro/release.avsc by tools/generate.ts; do not edit.

/** Where a record stands: one place in one log. The log id is the broker's topic id, so a re-created topic or another cluster is another log. */
export interface ReleaseCoordinate {
  /** Topic id of the log, UUID text. */
  readonly logId: string
  /** Partition number. */
  readonly partition: number
  /** Offset in that partition. */
  readonly offset: number
}

/** A waiting delivery that is due again; re-enters policy like any event. */
export interface Release {
  /** Decision released. */
  readonly decisionId: string
  /** Attempt this release begins: 1 for the first. */
  readonly attempt: number
  /** Agent it is for. */
  readonly agent: string
  /** Tenant the event belongs to. */
  readonly tenant: string
  /** Source it came through, as named in weir.yaml. */
  readonly source: string
  /** SHA-256 of the length-prefixed (tenant, source, event id): the event's identity. */
  readonly eventKey: Buffer
  /** Readable form of the event key, bounded to 512 bytes; for people, never for comparing. */
  readonly eventKeyText: string
  /** Ordering key. */
  readonly orderingKey: string
  /** Admission id. */
  readonly admissionId: string
  /** due, approved, again or operator. */
  readonly cause: string
  /** The RawEvent bytes. */
  readonly event: Buffer
  /** Coordinate of the weir.events record it began with. */
  readonly input: ReleaseCoordinate
  /** Effects of the failed attempt it follows; empty if none. */
  readonly effects: string
  /** The deferral reserved a rate slot, so it is not charged again. */
  readonly rateReserved: boolean
  /** When the releaser produced it. */
  readonly releasedAtMs: number
  /** Run. */
  readonly run: null | string
  /** W3C trace context. */
  readonly traceparent: null | string
}

export const releaseSchema = {"type":"record","name":"Release","namespace":"dev.weir","doc":"A waiting delivery that is due again; re-enters policy like any event.","fields":[{"name":"decisionId","type":"string","doc":"Decision released."},{"name":"attempt","type":"int","doc":"Attempt this release begins: 1 for the first."},{"name":"agent","type":"string","doc":"Agent it is for."},{"name":"tenant","type":"string","doc":"Tenant the event belongs to."},{"name":"source","type":"string","doc":"Source it came through, as named in weir.yaml."},{"name":"eventKey","type":"bytes","doc":"SHA-256 of the length-prefixed (tenant, source, event id): the event's identity."},{"name":"eventKeyText","type":"string","doc":"Readable form of the event key, bounded to 512 bytes; for people, never for comparing."},{"name":"orderingKey","type":"string","doc":"Ordering key."},{"name":"admissionId","type":"string","doc":"Admission id."},{"name":"cause","type":"string","doc":"due, approved, again or operator."},{"name":"event","type":"bytes","doc":"The RawEvent bytes."},{"name":"input","type":{"type":"record","name":"Coordinate","doc":"Where a record stands: one place in one log. The log id is the broker's topic id, so a re-created topic or another cluster is another log.","fields":[{"name":"logId","type":"string","doc":"Topic id of the log, UUID text."},{"name":"partition","type":"int","doc":"Partition number."},{"name":"offset","type":"long","doc":"Offset in that partition."}]},"doc":"Coordinate of the weir.events record it began with."},{"name":"effects","type":"string","doc":"Effects of the failed attempt it follows; empty if none.","default":""},{"name":"rateReserved","type":"boolean","doc":"The deferral reserved a rate slot, so it is not charged again.","default":false},{"name":"releasedAtMs","type":"long","doc":"When the releaser produced it."},{"name":"run","type":["null","string"],"doc":"Run.","default":null},{"name":"traceparent","type":["null","string"],"doc":"W3C trace context.","default":null}]} as const
