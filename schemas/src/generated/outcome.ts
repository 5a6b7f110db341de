// Made from avro/outcome.avsc by tools/generate.ts; do not edit.

/** What an agent reports about one delivery. */
export interface Outcome {
  /** Decision the report is about. */
  readonly decisionId: string
  /** Attempt it is about. */
  readonly attempt: number
  /** Tenant. */
  readonly tenant: string
  /** Agent that reports. */
  readonly agent: string
  /** Event key. */
  readonly eventKey: Buffer
  /** Readable form. */
  readonly eventKeyText: string
  /** Ordering key. */
  readonly orderingKey: string
  /** completed or failed, as the agent reports; no_report when policy found that its time has passed. */
  readonly status: string
  /** Of a failure: none, unknown or done; empty when completed. */
  readonly effects: string
  /** One sentence of the agent, at most 2 KiB. */
  readonly detail: null | string
  /** Run. */
  readonly run: null | string
  /** Root event. */
  readonly rootEvent: null | string
  /** Direct cause. */
  readonly cause: null | string
  /** When it was reported. */
  readonly reportedAtMs: number
  /** W3C trace context. */
  readonly traceparent: null | string
}

export const outcomeSchema = {"type":"record","name":"Outcome","namespace":"dev.weir","doc":"What an agent reports about one delivery.","fields":[{"name":"decisionId","type":"string","doc":"Decision the report is about."},{"name":"attempt","type":"int","doc":"Attempt it is about."},{"name":"tenant","type":"string","doc":"Tenant."},{"name":"agent","type":"string","doc":"Agent that reports."},{"name":"eventKey","type":"bytes","doc":"Event key."},{"name":"eventKeyText","type":"string","doc":"Readable form."},{"name":"orderingKey","type":"string","doc":"Ordering key."},{"name":"status","type":"string","doc":"completed or failed, as the agent reports; no_report when policy found that its time has passed."},{"name":"effects","type":"string","doc":"Of a failure: none, unknown or done; empty when completed."},{"name":"detail","type":["null","string"],"doc":"One sentence of the agent, at most 2 KiB.","default":null},{"name":"run","type":["null","string"],"doc":"Run.","default":null},{"name":"rootEvent","type":["null","string"],"doc":"Root event.","default":null},{"name":"cause","type":["null","string"],"doc":"Direct cause.","default":null},{"name":"reportedAtMs","type":"long","doc":"When it was reported."},{"name":"traceparent","type":["null","string"],"doc":"W3C trace context.","default":null}]} as const
