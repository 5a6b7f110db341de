// One catalogue of all error codes. `docs/errors.md` is made from it.

export interface ErrorEntry {
  /** HTTP status where a caller sees it; 0 for errors only operators see. */
  readonly status: number
  /** RFC 9457 title: one line for the caller, without internals. */
  readonly title: string
  /** What the operator or caller can do about it. */
  readonly remedy: string
  /** Whether the same request or start can succeed later. */
  readonly retriable: boolean
}

const entry = (status: number, title: string, remedy: string, retriable = false): ErrorEntry => ({
  status,
  title,
  remedy,
  retriable,
})

export const errorCatalogue = {
  bad_signature: entry(
    401,
    'The signature does not match',
    'Check the secret of this source and that nothing between sender and Weir changes the body.',
  ),
  unauthorized: entry(
    401,
    'The API key is missing or unknown',
    'Send `Authorization: Bearer <key>` with a key of weir.yaml.',
  ),
  forbidden: entry(403, 'This key may not do that', 'Use a key of the right tenant or scope.'),
  unknown_source: entry(404, 'There is no such source', 'Use a source name of weir.yaml.'),
  not_found: entry(404, 'There is no such resource', 'Check the id.'),
  method_not_allowed: entry(405, 'This method is not allowed here', 'Use the method in the Allow header.'),
  malformed: entry(400, 'The body cannot be read', 'Send a complete body in the format its Content-Type names.'),
  missing_event_key: entry(
    400,
    'The event has no id',
    'Send the id where this source expects it: a header, a path in the body, or the CloudEvents id.',
  ),
  invalid_value: entry(400, 'A value is not allowed', 'Send the named field within the named limits.'),
  unsupported_media_type: entry(415, 'This media type is not supported', 'Use a media type the documentation lists.'),
  too_large: entry(413, 'The body is too large', 'Send at most the limit the answer names.'),
  too_slow: entry(408, 'The body took too long', 'Send the whole body within the time limit.'),
  headers_too_large: entry(431, 'The headers are too large', 'Send fewer or shorter headers.'),
  duplicate_event_key: entry(
    409,
    'An event with this key was accepted before',
    'Nothing to do: the original is named in the answer.',
  ),
  request_in_progress: entry(
    409,
    'A request with this key is in progress',
    'Retry after the time in Retry-After.',
    true,
  ),
  payload_mismatch: entry(422, 'The key was used before with another payload', 'Use a new key for a new event.'),
  rate_limited: entry(429, 'Too many requests', 'Retry after the time in Retry-After.', true),
  temporarily_unavailable: entry(
    503,
    'Weir cannot take this event just now',
    'Retry after the time in Retry-After.',
    true,
  ),
  internal: entry(
    500,
    'Something went wrong inside Weir',
    'Retry; if it stays, give the correlation id to the operator.',
    true,
  ),
  config_invalid: entry(0, 'The configuration is not valid', 'Change the named setting.'),
  prerequisite_missing: entry(0, 'Something Weir needs is not there', 'Install or start what the message names.'),
  broker_unavailable: entry(0, 'Kafka does not answer', 'Check WEIR_KAFKA_BROKERS and the broker.', true),
  registry_unavailable: entry(
    0,
    'The schema registry does not answer',
    'Check WEIR_SCHEMA_REGISTRY_URL and the registry.',
    true,
  ),
  database_unavailable: entry(0, 'Postgres does not answer', 'Check DATABASE_URL and the server.', true),
  cache_unavailable: entry(0, 'Redis does not answer', 'Check REDIS_URL and the server.', true),
  topic_missing: entry(0, 'A topic is missing', 'Create the topics: run `weir up`, or create the named topic.'),
  topic_mismatch: entry(
    0,
    'A topic has another setting than Weir needs',
    'Change the named setting of the named topic.',
  ),
  schema_missing: entry(0, 'A schema is not registered', 'Run `weir schemas push`.'),
  schema_incompatible: entry(0, 'A schema change would break readers', 'Only add fields with a default.'),
  schema_unknown: entry(
    0,
    'A record names a schema id the registry does not know',
    'Look at the parked record; its producer used another registry.',
  ),
  publisher_full: entry(
    0,
    'Too much is waiting to be written to Kafka',
    'Wait; if it stays, look at the broker.',
    true,
  ),
  record_too_large: entry(
    0,
    'A record is larger than its topic allows',
    'Raise max.message.bytes of the named topic or lower the intake limit.',
  ),
  log_out_of_range: entry(
    0,
    'A position lies outside its log',
    'Look at retention and at the named position; see the runbook.',
  ),
  log_changed: entry(0, 'A topic was created again', 'Both logs are named; follow the runbook for a changed log.'),
  log_truncated: entry(
    0,
    'A log ends below a position that was reached before',
    'Both are named; follow the runbook for a truncated log.',
  ),
  membership_lost: entry(
    0,
    'This instance is no longer a member of its group',
    'Nothing to do: another instance has taken over.',
    true,
  ),
  fenced: entry(0, 'Another instance owns this partition now', 'Nothing to do: another instance has taken over.'),
  no_progress: entry(0, 'A partition has not moved for too long', 'Look at the last error of that partition.', true),
  migration_pending: entry(0, 'The database is older than this program', 'Run `weir up`, or apply the migrations.'),
  migration_newer: entry(
    0,
    'The database is newer than this program',
    'Deploy the version that made it, or a newer one.',
  ),
  migration_changed: entry(
    0,
    'A migration that was applied has changed',
    'Restore the named file: applied migrations are never edited.',
  ),
  coverage_gap: entry(
    0,
    'Offsets are missing between two batches of a log',
    'See the runbook for gaps in the audit store.',
  ),
} as const satisfies Record<string, ErrorEntry>

export type ErrorCode = keyof typeof errorCatalogue

/** The one error class. `message` is for operators; callers only ever see the catalogue's title and `publicDetail`. */
export class WeirError extends Error {
  readonly code: ErrorCode
  /** What was involved: names and values, never secrets. */
  readonly context: Readonly<Record<string, unknown>>
  /** What a caller may read about this case; no SQL, hosts or stacks. */
  readonly publicDetail: string | undefined

  constructor(
    code: ErrorCode,
    message: string,
    options: {
      readonly cause?: unknown
      readonly context?: Readonly<Record<string, unknown>>
      readonly publicDetail?: string
    } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'WeirError'
    this.code = code
    this.context = options.context ?? {}
    this.publicDetail = options.publicDetail
  }

  get retriable(): boolean {
    return errorCatalogue[this.code].retriable
  }
}

export function hasCode(error: unknown, code: ErrorCode): boolean {
  return error instanceof WeirError && error.code === code
}
