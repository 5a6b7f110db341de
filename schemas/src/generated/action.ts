// Made from avro/action.avsc by tools/generate.ts; do not edit.

/** What an agent decided and called: intent before the effect, then the result. */
export interface Action {
  /** Decision id plus step: the idempotency key of the effect. */
  readonly actionId: string
  /** Decision it acts on. */
  readonly decisionId: string
  /** intent or result. */
  readonly phase: string
  /** Tenant. */
  readonly tenant: string
  /** Agent. */
  readonly agent: string
  /** Tool called. */
  readonly tool: string
  /** Where it went. */
  readonly destination: string
  /** SHA-256 of the canonical arguments (RFC 8785). */
  readonly argumentsDigest: Buffer
  /** The arguments, where they may be kept. */
  readonly arguments: null | Buffer
  /** pending, completed, failed or indeterminate. */
  readonly status: string
  /** What it was about. */
  readonly subject: null | string
  /** Event that led to it. */
  readonly eventKey: null | Buffer
  /** Readable form. */
  readonly eventKeyText: null | string
  /** Run. */
  readonly run: null | string
  /** Root event. */
  readonly rootEvent: null | string
  /** Direct cause. */
  readonly cause: null | string
  /** Distance from the root. */
  readonly hops: number
  /** Attempt. */
  readonly attempt: number
  /** none, unknown or done; empty in an intent. */
  readonly effects: string
  /** What came back, bounded. */
  readonly result: null | Buffer
  /** When. */
  readonly atMs: number
  /** W3C trace context. */
  readonly traceparent: null | string
}

export const actionSchema = {"type":"record","name":"Action","namespace":"dev.weir","doc":"What an agent decided and called: intent before the effect, then the result.","fields":[{"name":"actionId","type":"string","doc":"Decision id plus step: the idempotency key of the effect."},{"name":"decisionId","type":"string","doc":"Decision it acts on."},{"name":"phase","type":"string","doc":"intent or result."},{"name":"tenant","type":"string","doc":"Tenant."},{"name":"agent","type":"string","doc":"Agent."},{"name":"tool","type":"string","doc":"Tool called."},{"name":"destination","type":"string","doc":"Where it went."},{"name":"argumentsDigest","type":"bytes","doc":"SHA-256 of the canonical arguments (RFC 8785)."},{"name":"arguments","type":["null","bytes"],"doc":"The arguments, where they may be kept.","default":null},{"name":"status","type":"string","doc":"pending, completed, failed or indeterminate."},{"name":"subject","type":["null","string"],"doc":"What it was about.","default":null},{"name":"eventKey","type":["null","bytes"],"doc":"Event that led to it.","default":null},{"name":"eventKeyText","type":["null","string"],"doc":"Readable form.","default":null},{"name":"run","type":["null","string"],"doc":"Run.","default":null},{"name":"rootEvent","type":["null","string"],"doc":"Root event.","default":null},{"name":"cause","type":["null","string"],"doc":"Direct cause.","default":null},{"name":"hops","type":"int","doc":"Distance from the root.","default":0},{"name":"attempt","type":"int","doc":"Attempt.","default":0},{"name":"effects","type":"string","doc":"none, unknown or done; empty in an intent.","default":""},{"name":"result","type":["null","bytes"],"doc":"What came back, bounded.","default":null},{"name":"atMs","type":"long","doc":"When."},{"name":"traceparent","type":["null","string"],"doc":"W3C trace context.","default":null}]} as const
