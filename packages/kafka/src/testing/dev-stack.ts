// For tests: where the real services are.
import type { Log } from '@weir/core'

function setting(name: string): string {
  // oxlint-disable-next-line node/no-process-env -- tests find the services here
  const value = process.env[name]
  if (value === undefined || value === '') throw new Error(`${name} is not set: start the services with ./weir up`)
  return value
}

export const brokers = (): string[] => setting('WEIR_KAFKA_BROKERS').split(',')
export const registryUrl = (): string => setting('WEIR_SCHEMA_REGISTRY_URL')

export const silentLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLog,
}
