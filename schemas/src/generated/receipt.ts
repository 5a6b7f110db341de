// Made from avro/receipt.avsc by tools/generate.ts; do not edit.

/** An answer the edge gave; rejections too, without their body. In a storm equal answers are counted per key and second. */
export interface Receipt {
  /** UUIDv7 of the receipt; the correlation id of the answer. */
  readonly receiptId: string
  /** When the answer was given. */
  readonly atMs: number
  /** Tenant, where known. */
  readonly tenant: null | string
  /** Source or client name as addressed; bounded to 128 bytes. */
  readonly source: string
  /** Event key, where it could be cut. */
  readonly eventKey: null | Buffer
  /** Its readable form. */
  readonly eventKeyText: null | string
  /** Delivery that was accepted. */
  readonly deliveryId: null | string
  /** For a conflict: the delivery it repeats. */
  readonly originalDeliveryId: null | string
  /** accepted, duplicate, payload_mismatch, in_progress, rejected or unavailable. */
  readonly outcome: string
  /** Code of the error catalogue, or `ok`. */
  readonly reason: string
  /** HTTP status given. */
  readonly status: number
  /** How many equal answers this receipt stands for. */
  readonly count: number
  /** Size of the request body as far as it was read. */
  readonly sizeBytes: number
  /** Which secret or key verified it. */
  readonly credentialId: null | string
  /** Run, where known. */
  readonly run: null | string
  /** W3C trace context. */
  readonly traceparent: null | string
}

export const receiptSchema = {"type":"record","name":"Receipt","namespace":"dev.weir","doc":"An answer the edge gave; rejections too, without their body. In a storm equal answers are counted per key and second.","fields":[{"name":"receiptId","type":"string","doc":"UUIDv7 of the receipt; the correlation id of the answer."},{"name":"atMs","type":"long","doc":"When the answer was given."},{"name":"tenant","type":["null","string"],"doc":"Tenant, where known.","default":null},{"name":"source","type":"string","doc":"Source or client name as addressed; bounded to 128 bytes."},{"name":"eventKey","type":["null","bytes"],"doc":"Event key, where it could be cut.","default":null},{"name":"eventKeyText","type":["null","string"],"doc":"Its readable form.","default":null},{"name":"deliveryId","type":["null","string"],"doc":"Delivery that was accepted.","default":null},{"name":"originalDeliveryId","type":["null","string"],"doc":"For a conflict: the delivery it repeats.","default":null},{"name":"outcome","type":"string","doc":"accepted, duplicate, payload_mismatch, in_progress, rejected or unavailable."},{"name":"reason","type":"string","doc":"Code of the error catalogue, or `ok`."},{"name":"status","type":"int","doc":"HTTP status given."},{"name":"count","type":"int","doc":"How many equal answers this receipt stands for.","default":1},{"name":"sizeBytes","type":"long","doc":"Size of the request body as far as it was read."},{"name":"credentialId","type":["null","string"],"doc":"Which secret or key verified it.","default":null},{"name":"run","type":["null","string"],"doc":"Run, where known.","default":null},{"name":"traceparent","type":["null","string"],"doc":"W3C trace context.","default":null}]} as const
