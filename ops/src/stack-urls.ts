/** Where the backing services are; the names are those of the environment. */
export interface StackUrls {
  readonly WEIR_KAFKA_BROKERS: string
  readonly WEIR_SCHEMA_REGISTRY_URL: string
  /** The administrator's URL. */
  readonly DATABASE_URL: string
  readonly REDIS_URL: string
}

export type StackName = keyof StackUrls
export const stackNames = ['WEIR_KAFKA_BROKERS', 'WEIR_SCHEMA_REGISTRY_URL', 'DATABASE_URL', 'REDIS_URL'] as const
