import type { Log } from '@weir/core'
import { type DestinationStream, pino } from 'pino'
import { redact, redactFields } from './redaction.ts'

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
  return pino(
    {
      level: options.level,
      base: { service: options.service },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: {
        level: label => ({ level: label }),
        bindings: redactFields,
        log: redactFields,
      },
      // `err` has been spelled out by then.
      serializers: { err: (value: unknown) => (value instanceof Error ? redact(value) : value) },
    },
    options.destination ?? pino.destination({ fd: 1, sync: true }),
  )
}
