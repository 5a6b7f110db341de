// The shape of weir.yaml after it was read and checked (packages/runtime does both). Plain data, shared by all services.

export type ProviderName = 'github' | 'stripe' | 'standard-webhooks' | 'hmac'

/** A secret by reference: an environment variable or a file. The value is resolved at start and never logged. */
export interface SecretReference {
  /** Name shown in logs and receipts; never the value. */
  readonly id: string
  readonly value: string
  /** After this time the secret no longer verifies, milliseconds since 1970. */
  readonly notAfterMs: number | null
}

/** RFC 6901 JSON Pointer into the body. */
export type Pointer = string

export interface HmacScheme {
  readonly header: string
  /** Text before the signature, for example `sha256=`. */
  readonly prefix: string
  readonly algorithm: 'sha256' | 'sha512'
  readonly encoding: 'hex' | 'base64'
  /** Signed text with `{body}`, `{timestamp}` and `{id}` as places, for example `{timestamp}.{body}`. */
  readonly template: string
  readonly timestampHeader: string | null
  readonly toleranceSeconds: number
}

/** Where an id or a type is taken from; the first that the configuration names wins. */
export interface KeyRule {
  readonly header: string | null
  readonly body: Pointer | null
  /** Paths whose values make a fingerprint (SHA-256 over RFC 8785). */
  readonly fingerprint: readonly Pointer[]
}

/** Paths that say what an event is about. All optional; `null` where not configured. */
export interface EventPaths {
  readonly subject: Pointer | null
  readonly object: Pointer | null
  readonly version: Pointer | null
  readonly run: Pointer | null
  readonly eventTime: Pointer | null
}

export interface BusinessKeyRule {
  readonly space: string
  /** Values at these paths, in order, make the key; an absent one means this event has none. */
  readonly paths: readonly Pointer[]
}

/** Another window for some event types of a source; the first rule that names the type counts. `*` at the end matches any rest. */
export interface TypeWindow {
  readonly types: readonly string[]
  readonly windowSeconds: number
}

export interface SourceConfiguration {
  readonly name: string
  readonly tenant: string
  readonly provider: ProviderName
  readonly secrets: readonly SecretReference[]
  readonly hmac: HmacScheme | null
  /** `null`: the provider's own rule. Required for `hmac`. */
  readonly key: KeyRule | null
  readonly type: { readonly header: string | null; readonly body: Pointer | null } | null
  readonly paths: EventPaths
  readonly businessKey: BusinessKeyRule | null
  readonly windowSeconds: number
  readonly typeWindows: readonly TypeWindow[]
  /** What dedup does with a known key and another payload. */
  readonly onPayloadChange: 'flag' | 'park'
  readonly maxBodyBytes: number
}

export interface ClientConfiguration {
  readonly name: string
  readonly tenant: string
  /** SHA-256 of the API key, hex. The key itself is nowhere. */
  readonly keySha256: string
  readonly onDuplicate: 'conflict' | 'replay'
  readonly paths: EventPaths
  readonly businessKey: BusinessKeyRule | null
  readonly windowSeconds: number
  readonly typeWindows: readonly TypeWindow[]
  readonly maxBodyBytes: number
}

export interface AgentConfiguration {
  readonly name: string
  readonly tenant: string
  readonly outcomes: 'off' | 'required'
  /** SHA-256 of the API key, hex; null for an agent that has none. */
  readonly keySha256: string | null
}

/** First match does not end the search: an event goes to the agents of every route it matches. `*` at the end of a pattern matches any rest. */
export interface RouteConfiguration {
  readonly name: string
  readonly tenant: string
  readonly sources: readonly string[]
  readonly types: readonly string[]
  readonly agents: readonly string[]
  /** How often an event is delivered at most, while its agent reports failures without effects. */
  readonly maxAttempts: number
  /** Wait before the second attempt; doubles each time. */
  readonly backoffSeconds: number
  /** Time an agent has to report. */
  readonly deadlineSeconds: number
}

export interface RateBudget {
  readonly kind: 'rate'
  readonly name: string
  readonly scope: 'tenant' | 'run'
  /** Empty: all tenants. */
  readonly tenants: readonly string[]
  readonly limit: number
  readonly periodSeconds: number
  /** Events that may pass at once. At most `burst + ceil(L/T) - 1` pass in any time L, with T = period/limit. */
  readonly burst: number
}

export interface CeilingBudget {
  readonly kind: 'ceiling'
  readonly name: string
  readonly scope: 'tenant' | 'run'
  readonly tenants: readonly string[]
  readonly limit: number
  readonly window: 'none' | 'minute' | 'hour' | 'day' | 'month'
  readonly onExhaust: 'deny' | 'defer'
}

export type BudgetConfiguration = RateBudget | CeilingBudget

/** A person or program that may ask the audit store. */
export interface AnalystConfiguration {
  readonly name: string
  /** Tenants it may see; `*` alone means all. */
  readonly tenants: readonly string[]
  /** SHA-256 of the API key, hex. */
  readonly keySha256: string
}

export interface WeirConfiguration {
  readonly tenants: readonly string[]
  readonly sources: readonly SourceConfiguration[]
  readonly clients: readonly ClientConfiguration[]
  readonly agents: readonly AgentConfiguration[]
  readonly routes: readonly RouteConfiguration[]
  readonly budgets: readonly BudgetConfiguration[]
  readonly analysts: readonly AnalystConfiguration[]
  /** SHA-256 of the checked rules without secrets, hex: goes into every decision. */
  readonly version: string
}
