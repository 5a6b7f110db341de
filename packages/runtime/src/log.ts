import type { Log } from '@weir/core'
import { type DestinationStream, type Logger, pino } from 'pino'
import { redactFields } from './redaction.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

export interface LogOptions {
  /** Stands in every line. */
  readonly service: string
  readonly level: LogLevel
  /** Where lines go. Default: standard output, written at once, so that a crash loses none. */
  readonly destination?: DestinationStream
}

/**
 * JSON lines with `level`, `time`, `service`, `msg` and the given fields; an error belongs under `err`. Authorization,
 * signatures, secrets, bodies and all bytes are replaced wherever they occur.
 */
export function createLog(options: LogOptions): Log {
  const root = pino(
    {
      level: options.level,
      base: { service: options.service },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: label => ({ level: label }) },
      // Errors are spelled out, and redacted, before pino sees them.
      serializers: { err: (value: unknown) => value },
    },
    options.destination ?? pino.destination({ fd: 1, sync: true }),
  )
  return redactingLog(root)
}

/** Redacts in one place all that enters a line, the fields of child logs included, which pino's own formatters pass by. */
function redactingLog(logger: Logger): Log {
  return {
    debug: (fields, message) => {
      if (logger.isLevelEnabled('debug')) logger.debug(redactFields(fields), message)
    },
    info: (fields, message) => {
      if (logger.isLevelEnabled('info')) logger.info(redactFields(fields), message)
    },
    warn: (fields, message) => {
      if (logger.isLevelEnabled('warn')) logger.warn(redactFields(fields), message)
    },
    error: (fields, message) => logger.error(redactFields(fields), message),
    child: fields => redactingLog(logger.child(redactFields(fields))),
  }
}
