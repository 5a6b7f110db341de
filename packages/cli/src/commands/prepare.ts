import { commonSettings, createLog, loadConfiguration, readSettings, secret } from '@weir/runtime'
import { prepare } from '@weir/system'
import type { Command } from 'commander'
import { z } from 'zod'

const password = (): z.ZodType<string> =>
  secret(z.string().min(16).describe('Password of this service’s database login.'))

/** Settings of `weir prepare`; docker-compose.yml gives them to its one-shot container. */
export const configSchema = z.object({
  WEIR_KAFKA_BROKERS: commonSettings.WEIR_KAFKA_BROKERS,
  WEIR_SCHEMA_REGISTRY_URL: commonSettings.WEIR_SCHEMA_REGISTRY_URL,
  DATABASE_URL: commonSettings.DATABASE_URL,
  WEIR_TOPIC_PREFIX: commonSettings.WEIR_TOPIC_PREFIX,
  WEIR_TOPIC_PARTITIONS: commonSettings.WEIR_TOPIC_PARTITIONS,
  WEIR_TOPIC_REPLICATION_FACTOR: commonSettings.WEIR_TOPIC_REPLICATION_FACTOR,
  WEIR_TOPIC_MIN_INSYNC_REPLICAS: commonSettings.WEIR_TOPIC_MIN_INSYNC_REPLICAS,
  WEIR_CONFIG: commonSettings.WEIR_CONFIG,
  WEIR_DB_PASSWORD_INGEST: password(),
  WEIR_DB_PASSWORD_DEDUP: password(),
  WEIR_DB_PASSWORD_POLICY: password(),
  WEIR_DB_PASSWORD_AUDIT_SINK: password(),
  WEIR_DB_PASSWORD_AUDIT_READER: password(),
})

/** `weir prepare`: the deploy step before the services start. */
export function register(program: Command): void {
  program
    .command('prepare')
    .description(
      'Apply migrations, make database logins, register schemas, create topics. Settings come from the environment.',
    )
    .addHelpText('after', '\nExample: docker compose run --rm prepare\nThe settings are in docs/configuration.md.')
    .action(async () => {
      const settings = readSettings(configSchema, process.env)
      await prepare({
        kafkaBrokers: settings.WEIR_KAFKA_BROKERS,
        schemaRegistryUrl: settings.WEIR_SCHEMA_REGISTRY_URL,
        adminUrl: settings.DATABASE_URL,
        topicPrefix: settings.WEIR_TOPIC_PREFIX,
        partitions: settings.WEIR_TOPIC_PARTITIONS,
        replicationFactor: settings.WEIR_TOPIC_REPLICATION_FACTOR,
        minInsyncReplicas: settings.WEIR_TOPIC_MIN_INSYNC_REPLICAS,
        passwords: {
          ingest: settings.WEIR_DB_PASSWORD_INGEST,
          dedup: settings.WEIR_DB_PASSWORD_DEDUP,
          policy: settings.WEIR_DB_PASSWORD_POLICY,
          audit_sink: settings.WEIR_DB_PASSWORD_AUDIT_SINK,
          audit_reader: settings.WEIR_DB_PASSWORD_AUDIT_READER,
        },
        // It needs the names of the agents, nobody's secrets.
        configuration: await loadConfiguration(settings.WEIR_CONFIG, process.env, { secretsOf: [] }),
        log: createLog({ service: 'prepare', level: 'info' }),
      })
      console.log('Prepared.')
    })
}
