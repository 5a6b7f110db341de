/** The one source of time. Never used to decide windows: those follow log-append time. */
export interface Clock {
  /** Milliseconds since 1970. */
  nowMs(): number
}

/** Structured log, as pino has it. Messages are constant; values go into the fields. */
export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
  child(fields: object): Log
}
