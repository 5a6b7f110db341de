// Made from avro/decision.avsc by tools/generate.ts; do not edit.

/** One rule that spoke. */
export interface DecisionReason {
  /** Gate or check: duplicate, business_key, rate, ceiling, capability, route, ... */
  readonly gate: string
  /** Machine-readable code. */
  readonly code: string
  /** One sentence for a person. */
  readonly detail: string
  /** Rule or budget name from the configuration. */
  readonly rule: null | string
  /** The limit, in the rule's unit. */
  readonly limit: null | number
  /** What was used when it was judged. */
  readonly used: null | number
  /** Start of the window judged. */
  readonly windowStartMs: null | number
}

/** Where a record stands: one place in one log. The log id is the broker's topic id, so a re-created topic or another cluster is another log. */
export interface DecisionCoordinate {
  /** Topic id of the log, UUID text. */
  readonly logId: string
  /** Partition number. */
  readonly partition: number
  /** Offset in that partition. */
  readonly offset: number
}

/** A second unique claim in a key space of the tenant: two sources may report one action. */
export interface DecisionBusinessKey {
  /** Name of the key space, from the configuration. */
  readonly space: string
  /** Value cut from the event, at most 512 bytes. */
  readonly value: string
}

/** One entry of the budget ledger made by this verdict. */
export interface DecisionCharge {
  /** Decision id, for a delivery. */
  readonly chargeId: string
  /** Budget it was charged to: rule and scope value. */
  readonly budget: string
  /** Start of its window; 0 for none. */
  readonly windowStartMs: number
  /** Units charged. */
  readonly amount: number
  /** Limit of the budget at that time. */
  readonly limit: number
}

/** How a delivery stands with an agent that reports. */
export interface DecisionDeliveryTerms {
  /** How often it was delivered, this time included. */
  readonly number: number
  /** How often it may be delivered. */
  readonly maxAttempts: number
  /** Wait before the second delivery; doubles each time. */
  readonly backoffMs: number
  /** Time the agent has to report. */
  readonly deadlineMs: number
}

/** What an agent reported, or that its time passed, and what followed. */
export interface DecisionReportResult {
  /** report or deadline. */
  readonly kind: string
  /** completed, failed or no_report. */
  readonly status: string
  /** completed, again, parked, late or contradictory. */
  readonly result: string
  /** Why, for example attempts_exhausted. */
  readonly code: string
}

/** A verdict of dedup or policy with its reasons; carries all that the stage's rows hold, so that they can be rebuilt. */
export interface Decision {
  /** UUIDv5 of (event key, admission id, agent, stage). */
  readonly decisionId: string
  /** dedup or policy. */
  readonly stage: string
  /** Tenant the event belongs to. */
  readonly tenant: string
  /** Source it came through, as named in weir.yaml. */
  readonly source: string
  /** SHA-256 of the length-prefixed (tenant, source, event id): the event's identity. */
  readonly eventKey: Buffer
  /** Readable form of the event key, bounded to 512 bytes; for people, never for comparing. */
  readonly eventKeyText: string
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
  /** Delivery id with which the event's claim was won; of a duplicate: the original's. */
  readonly admissionId: string
  /** Delivery id of the record judged. */
  readonly deliveryId: string
  /** Ordering key. */
  readonly orderingKey: string
  /** Agent judged for; null in dedup. */
  readonly agent: null | string
  /** Agents the event is routed to, as stored with attempt 0. */
  readonly agents: readonly string[]
  /** dedup: admitted, duplicate, parked. policy: allow, defer, hold, deny, stale, parked, unrouted; of a report: completed, defer (again), parked, ignored. */
  readonly verdict: string
  /** All rules that spoke, the deciding one first. */
  readonly reasons: readonly DecisionReason[]
  /** Topic of the record judged. */
  readonly inputTopic: string
  /** Coordinate of the record judged. */
  readonly input: DecisionCoordinate
  /** For a duplicate: where the original stands. */
  readonly original: null | DecisionCoordinate
  /** SHA-256 of the payload judged. */
  readonly payloadDigest: Buffer
  /** A duplicate whose payload differs from the original's. */
  readonly payloadDiffers: boolean
  /** Business key claimed or lost. */
  readonly businessKey: null | DecisionBusinessKey
  /** How many deliveries this decision answers. */
  readonly copies: number
  /** 0 for the weir.events record, n for the n-th release. */
  readonly attempt: number
  /** As in RawEvent. */
  readonly generation: number
  /** Effects reported with the outcome that led here: none, unknown, done; empty if none. */
  readonly effects: string
  /** Ledger entries made. */
  readonly charges: readonly DecisionCharge[]
  /** For a deferral: when it is due. */
  readonly notBeforeMs: null | number
  /** The RawEvent bytes that wait: of a deferral, and of a delivery whose agent has yet to report. */
  readonly waitingEvent: null | Buffer
  /** For a delivery to an agent that reports; null for one that does not. */
  readonly delivery: null | DecisionDeliveryTerms
  /** For a decision about a report of an agent. */
  readonly report: null | DecisionReportResult
  /** SHA-256 of the rules in force, hex. */
  readonly configVersion: string
  /** The one clock reading of this decision. */
  readonly atMs: number
  /** Log-append time of the record judged. */
  readonly appendedAtMs: number
  /** W3C trace context. */
  readonly traceparent: null | string
}

export const decisionSchema = {"type":"record","name":"Decision","namespace":"dev.weir","doc":"A verdict of dedup or policy with its reasons; carries all that the stage's rows hold, so that they can be rebuilt.","fields":[{"name":"decisionId","type":"string","doc":"UUIDv5 of (event key, admission id, agent, stage)."},{"name":"stage","type":"string","doc":"dedup or policy."},{"name":"tenant","type":"string","doc":"Tenant the event belongs to."},{"name":"source","type":"string","doc":"Source it came through, as named in weir.yaml."},{"name":"eventKey","type":"bytes","doc":"SHA-256 of the length-prefixed (tenant, source, event id): the event's identity."},{"name":"eventKeyText","type":"string","doc":"Readable form of the event key, bounded to 512 bytes; for people, never for comparing."},{"name":"type","type":"string","doc":"Event type, for example `pull_request.opened`."},{"name":"subject","type":["null","string"],"doc":"What the event is about (an account, an order), so that a question can start from it.","default":null},{"name":"object","type":["null","string"],"doc":"The object whose order and version matter.","default":null},{"name":"version","type":["null","string"],"doc":"Version of that object: a number or an RFC 3339 time, as text.","default":null},{"name":"run","type":["null","string"],"doc":"Agent run the event belongs to.","default":null},{"name":"rootEvent","type":["null","string"],"doc":"Event key text of the first event of the chain.","default":null},{"name":"cause","type":["null","string"],"doc":"Id of the direct cause (an event key text or a decision id).","default":null},{"name":"hops","type":"int","doc":"How many events lie between the root and this one.","default":0},{"name":"admissionId","type":"string","doc":"Delivery id with which the event's claim was won; of a duplicate: the original's."},{"name":"deliveryId","type":"string","doc":"Delivery id of the record judged."},{"name":"orderingKey","type":"string","doc":"Ordering key."},{"name":"agent","type":["null","string"],"doc":"Agent judged for; null in dedup.","default":null},{"name":"agents","type":{"type":"array","items":"string"},"doc":"Agents the event is routed to, as stored with attempt 0.","default":[]},{"name":"verdict","type":"string","doc":"dedup: admitted, duplicate, parked. policy: allow, defer, hold, deny, stale, parked, unrouted; of a report: completed, defer (again), parked, ignored."},{"name":"reasons","type":{"type":"array","items":{"type":"record","name":"Reason","doc":"One rule that spoke.","fields":[{"name":"gate","type":"string","doc":"Gate or check: duplicate, business_key, rate, ceiling, capability, route, ..."},{"name":"code","type":"string","doc":"Machine-readable code."},{"name":"detail","type":"string","doc":"One sentence for a person."},{"name":"rule","type":["null","string"],"doc":"Rule or budget name from the configuration.","default":null},{"name":"limit","type":["null","long"],"doc":"The limit, in the rule's unit.","default":null},{"name":"used","type":["null","long"],"doc":"What was used when it was judged.","default":null},{"name":"windowStartMs","type":["null","long"],"doc":"Start of the window judged.","default":null}]}},"doc":"All rules that spoke, the deciding one first.","default":[]},{"name":"inputTopic","type":"string","doc":"Topic of the record judged."},{"name":"input","type":{"type":"record","name":"Coordinate","doc":"Where a record stands: one place in one log. The log id is the broker's topic id, so a re-created topic or another cluster is another log.","fields":[{"name":"logId","type":"string","doc":"Topic id of the log, UUID text."},{"name":"partition","type":"int","doc":"Partition number."},{"name":"offset","type":"long","doc":"Offset in that partition."}]},"doc":"Coordinate of the record judged."},{"name":"original","type":["null","Coordinate"],"doc":"For a duplicate: where the original stands.","default":null},{"name":"payloadDigest","type":"bytes","doc":"SHA-256 of the payload judged."},{"name":"payloadDiffers","type":"boolean","doc":"A duplicate whose payload differs from the original's.","default":false},{"name":"businessKey","type":["null",{"type":"record","name":"BusinessKey","doc":"A second unique claim in a key space of the tenant: two sources may report one action.","fields":[{"name":"space","type":"string","doc":"Name of the key space, from the configuration."},{"name":"value","type":"string","doc":"Value cut from the event, at most 512 bytes."}]}],"doc":"Business key claimed or lost.","default":null},{"name":"copies","type":"int","doc":"How many deliveries this decision answers.","default":1},{"name":"attempt","type":"int","doc":"0 for the weir.events record, n for the n-th release.","default":0},{"name":"generation","type":"int","doc":"As in RawEvent.","default":0},{"name":"effects","type":"string","doc":"Effects reported with the outcome that led here: none, unknown, done; empty if none.","default":""},{"name":"charges","type":{"type":"array","items":{"type":"record","name":"Charge","doc":"One entry of the budget ledger made by this verdict.","fields":[{"name":"chargeId","type":"string","doc":"Decision id, for a delivery."},{"name":"budget","type":"string","doc":"Budget it was charged to: rule and scope value."},{"name":"windowStartMs","type":"long","doc":"Start of its window; 0 for none."},{"name":"amount","type":"long","doc":"Units charged."},{"name":"limit","type":"long","doc":"Limit of the budget at that time."}]}},"doc":"Ledger entries made.","default":[]},{"name":"notBeforeMs","type":["null","long"],"doc":"For a deferral: when it is due.","default":null},{"name":"waitingEvent","type":["null","bytes"],"doc":"The RawEvent bytes that wait: of a deferral, and of a delivery whose agent has yet to report.","default":null},{"name":"delivery","type":["null",{"type":"record","name":"DeliveryTerms","doc":"How a delivery stands with an agent that reports.","fields":[{"name":"number","type":"int","doc":"How often it was delivered, this time included."},{"name":"maxAttempts","type":"int","doc":"How often it may be delivered."},{"name":"backoffMs","type":"long","doc":"Wait before the second delivery; doubles each time."},{"name":"deadlineMs","type":"long","doc":"Time the agent has to report."}]}],"doc":"For a delivery to an agent that reports; null for one that does not.","default":null},{"name":"report","type":["null",{"type":"record","name":"ReportResult","doc":"What an agent reported, or that its time passed, and what followed.","fields":[{"name":"kind","type":"string","doc":"report or deadline."},{"name":"status","type":"string","doc":"completed, failed or no_report."},{"name":"result","type":"string","doc":"completed, again, parked, late or contradictory."},{"name":"code","type":"string","doc":"Why, for example attempts_exhausted."}]}],"doc":"For a decision about a report of an agent.","default":null},{"name":"configVersion","type":"string","doc":"SHA-256 of the rules in force, hex.","default":""},{"name":"atMs","type":"long","doc":"The one clock reading of this decision."},{"name":"appendedAtMs","type":"long","doc":"Log-append time of the record judged."},{"name":"traceparent","type":["null","string"],"doc":"W3C trace context.","default":null}]} as const
