/** A setting of the environment that tests on real services need. Throws when it is missing. */
export function setting(
  name: 'WEIR_KAFKA_BROKERS' | 'WEIR_SCHEMA_REGISTRY_URL' | 'DATABASE_URL' | 'REDIS_URL',
): string {
  const value = process.env[name]
  if (value === undefined || value === '') throw new Error(`${name} is not set: start the services with ./weir up`)
  return value
}
