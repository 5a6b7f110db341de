// Made from avro/key-state.avsc by tools/generate.ts; do not edit.

/** Where a record stands: one place in one log. The log id is the broker's topic id, so a re-created topic or another cluster is another log. */
export interface KeyStateCoordinate {
  /** Topic id of the log, UUID text. */
  readonly logId: string
  /** Partition number. */
  readonly partition: number
  /** Offset in that partition. */
  readonly offset: number
}

/** Public state of an event key: who won it and when. Compacted; warms dedup's cache, never decides. */
export interface KeyState {
  /** Tenant the event belongs to. */
  readonly tenant: string
  /** Source it came through, as named in weir.yaml. */
  readonly source: string
  /** SHA-256 of the length-prefixed (tenant, source, event id): the event's identity. */
  readonly eventKey: Buffer
  /** Readable form of the event key, bounded to 512 bytes; for people, never for comparing. */
  readonly eventKeyText: string
  /** Delivery that won the key (its admission id). */
  readonly deliveryId: string
  /** Coordinate of the winning record in weir.raw. */
  readonly input: KeyStateCoordinate
  /** SHA-256 of the winner's payload. */
  readonly payloadDigest: Buffer
  /** Log-append time of the winner. */
  readonly firstSeenMs: number
  /** admitted or duplicate (of a business key). */
  readonly state: string
}

export const keyStateSchema = {"type":"record","name":"KeyState","namespace":"dev.weir","doc":"Public state of an event key: who won it and when. Compacted; warms dedup's cache, never decides.","fields":[{"name":"tenant","type":"string","doc":"Tenant the event belongs to."},{"name":"source","type":"string","doc":"Source it came through, as named in weir.yaml."},{"name":"eventKey","type":"bytes","doc":"SHA-256 of the length-prefixed (tenant, source, event id): the event's identity."},{"name":"eventKeyText","type":"string","doc":"Readable form of the event key, bounded to 512 bytes; for people, never for comparing."},{"name":"deliveryId","type":"string","doc":"Delivery that won the key (its admission id)."},{"name":"input","type":{"type":"record","name":"Coordinate","doc":"Where a record stands: one place in one log. The log id is the broker's topic id, so a re-created topic or another cluster is another log.","fields":[{"name":"logId","type":"string","doc":"Topic id of the log, UUID text."},{"name":"partition","type":"int","doc":"Partition number."},{"name":"offset","type":"long","doc":"Offset in that partition."}]},"doc":"Coordinate of the winning record in weir.raw."},{"name":"payloadDigest","type":"bytes","doc":"SHA-256 of the winner's payload."},{"name":"firstSeenMs","type":"long","doc":"Log-append time of the winner."},{"name":"state","type":"string","doc":"admitted or duplicate (of a business key)."}]} as const
