import { hostname } from 'node:os'
import { WeirError } from '@weir/core'
import { z } from 'zod'
import { hideUrlPasswords } from './redaction.ts'

// Membership only; the schemas marked here are the keys of a WeakMap inside.
const secretSchemas = z.registry<{ secret: true }>()

/** Marks a setting whose value is never shown, only whether it is set. */
export function secret<S extends z.ZodType>(schema: S): S {
  secretSchemas.add(schema, { secret: true })
  return schema
}

/** A comma-separated list; empty items are dropped, at least one must remain. */
export function listSetting(item: z.ZodType<string, string> = z.string()): z.ZodType<string[]> {
  const split = (text: string): string[] =>
    text
      .split(',')
      .map(part => part.trim())
      .filter(part => part !== '')
  return z.string().transform(split).pipe(z.array(item).min(1))
}

/** A whole number within bounds, given as text. */
export function integerSetting(bounds: { readonly min: number; readonly max: number }): z.ZodType<number> {
  return z
    .string()
    .regex(/^-?\d+$/, 'not a whole number')
    .transform(Number)
    .pipe(z.int().min(bounds.min).max(bounds.max))
}

/** `true` or `false`. */
export function flagSetting(): z.ZodType<boolean> {
  return z.enum(['true', 'false']).transform(text => text === 'true')
}

const broker = z.string().regex(/^(\[[0-9a-f:.]+\]|[^\s:/]+):\d{1,5}$/i, 'not of the form host:port')

/** Settings that services share. Use as `z.object({ ...commonSettings, … })`, or pick the ones a service needs. */
export const commonSettings = {
  WEIR_KAFKA_BROKERS: listSetting(broker).describe('Kafka brokers to ask first, host:port, separated by commas.'),
  WEIR_SCHEMA_REGISTRY_URL: z
    .url({ protocol: /^https?$/ })
    .describe('Base URL of the Confluent-compatible schema registry.'),
  DATABASE_URL: secret(
    z
      .url({ protocol: /^postgres(ql)?$/ })
      .describe("Postgres with this service's own login: postgres://user:password@host:5432/database."),
  ),
  REDIS_URL: secret(z.url({ protocol: /^rediss?$/ }).describe('Redis: redis://host:6379.')),
  WEIR_TOPIC_PREFIX: z
    .string()
    .regex(/^[a-zA-Z0-9._-]{1,100}$/, 'letters, digits, dot, dash and underscore only, at most 100')
    .default('weir.')
    .describe('Begins the name of every topic, consumer group and transactional id of this installation.'),
  WEIR_TOPIC_PARTITIONS: integerSetting({ min: 1, max: 1_000 })
    .default(6)
    .describe('Partitions of each topic of the flow. Never changed for existing topics.'),
  WEIR_TOPIC_REPLICATION_FACTOR: integerSetting({ min: 1, max: 9 })
    .default(1)
    .describe('Copies of each topic partition. Use 3 in production.'),
  WEIR_TOPIC_MIN_INSYNC_REPLICAS: integerSetting({ min: 1, max: 9 })
    .default(1)
    .describe('Copies that must have a record before it counts as written. Use 2 in production.'),
  WEIR_CONFIG: z
    .string()
    .default('weir.yaml')
    .describe('Path of the configuration file with tenants, sources, agents and budgets.'),
  WEIR_INSTANCE_ID: z
    .string()
    .regex(/^[a-zA-Z0-9._-]{1,128}$/, 'letters, digits, dot, dash and underscore only, at most 128')
    .default(
      () =>
        `${hostname()
          .replaceAll(/[^a-zA-Z0-9._-]/g, '-')
          .slice(0, 100)}-${process.pid}`,
    )
    .describe('Name of this process in logs and client ids. Default: host name and process id.'),
  WEIR_ADMIN_HOST: z.string().default('127.0.0.1').describe('Address that /livez, /readyz and /metrics listen on.'),
  WEIR_ADMIN_PORT: integerSetting({ min: 0, max: 65_535 })
    .default(0)
    .describe('Port of /livez, /readyz and /metrics. 0 takes any free one and logs it.'),
  WEIR_LOG_LEVEL: z
    .enum(['debug', 'info', 'warn', 'error'])
    .default('info')
    .describe('Least severe log line that is written.'),
  WEIR_SHUTDOWN_TIMEOUT_MS: integerSetting({ min: 100, max: 600_000 })
    .default(20_000)
    .describe('Milliseconds an orderly stop may take before the process ends anyway.'),
} as const

/** Settings of a stage, which owns partition numbers of a consumer group: use as `z.object({ ...stageSettings, … })`. */
export const stageSettings = {
  WEIR_KAFKA_BROKERS: commonSettings.WEIR_KAFKA_BROKERS,
  WEIR_SCHEMA_REGISTRY_URL: commonSettings.WEIR_SCHEMA_REGISTRY_URL,
  DATABASE_URL: commonSettings.DATABASE_URL,
  WEIR_TOPIC_PREFIX: commonSettings.WEIR_TOPIC_PREFIX,
  WEIR_TOPIC_PARTITIONS: commonSettings.WEIR_TOPIC_PARTITIONS,
  WEIR_CONFIG: commonSettings.WEIR_CONFIG,
  WEIR_INSTANCE_ID: commonSettings.WEIR_INSTANCE_ID,
  WEIR_ADMIN_HOST: commonSettings.WEIR_ADMIN_HOST,
  WEIR_ADMIN_PORT: commonSettings.WEIR_ADMIN_PORT,
  WEIR_LOG_LEVEL: commonSettings.WEIR_LOG_LEVEL,
  WEIR_SHUTDOWN_TIMEOUT_MS: commonSettings.WEIR_SHUTDOWN_TIMEOUT_MS,
  WEIR_GROUP_SESSION_TIMEOUT_MS: integerSetting({ min: 6_000, max: 300_000 })
    .default(20_000)
    .describe('Silence after which another instance takes over the partitions of this one, milliseconds.'),
} as const

/**
 * Parses the environment once. An empty variable counts as not set. The result is frozen. Throws `config_invalid` naming every
 * bad setting, its value (secrets hidden) and what belongs there.
 */
export function readSettings<S extends z.ZodType>(schema: S, env: NodeJS.ProcessEnv): Readonly<z.output<S>> {
  const present = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ''))
  const result = schema.safeParse(present)
  const problems = result.success
    ? jointProblems(result.data)
    : result.error.issues.map(issue => problemLine(schema, issue, present))
  if (result.success && problems.length === 0) return deepFreeze(result.data)
  throw new WeirError('config_invalid', `Bad settings in the environment:\n${problems.join('\n')}`)
}

/** Rules that join several of the common settings. */
function jointProblems(settings: unknown): string[] {
  const { WEIR_TOPIC_MIN_INSYNC_REPLICAS: least, WEIR_TOPIC_REPLICATION_FACTOR: copies } = settings as {
    readonly WEIR_TOPIC_MIN_INSYNC_REPLICAS?: number
    readonly WEIR_TOPIC_REPLICATION_FACTOR?: number
  }
  if (least === undefined || copies === undefined || least <= copies) return []
  return [
    `  WEIR_TOPIC_MIN_INSYNC_REPLICAS=${least} is more than WEIR_TOPIC_REPLICATION_FACTOR=${copies}: nothing could be written. Lower it, or keep more copies.`,
  ]
}

function problemLine(schema: z.ZodType, issue: z.core.$ZodIssue, env: Record<string, string | undefined>): string {
  const name = String(issue.path[0] ?? '')
  const field = fieldOf(schema, name)
  const value = env[name]
  const purpose = field === null ? null : descriptionOf(field)
  const remedy = purpose === null ? 'Correct it.' : purpose
  if (value === undefined) return `  ${name} is not set. ${remedy}`
  const shown = field !== null && isSecret(field) ? '(hidden)' : JSON.stringify(hideUrlPasswords(value))
  return `  ${name}=${shown}: ${issue.message}. ${remedy}`
}

/** Effective settings for the start-up log line: a secret shows only as `set` or `not set`. */
export function settingsForLog<S extends z.ZodType>(
  schema: S,
  settings: Readonly<z.output<S>>,
): Record<string, unknown> {
  const shown: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(settings as Record<string, unknown>)) {
    const field = fieldOf(schema, name)
    if (field !== null && isSecret(field)) shown[name] = value === undefined ? 'not set' : 'set'
    else shown[name] = typeof value === 'string' ? hideUrlPasswords(value) : value
  }
  return shown
}

/** One setting as the documentation shows it. */
export interface SettingDescription {
  readonly name: string
  readonly description: string
  /** Default as text; `null`: none. */
  readonly defaultText: string | null
  readonly required: boolean
  readonly secret: boolean
}

/** All settings of a schema, in its order. */
export function describeSettings(schema: z.ZodType): readonly SettingDescription[] {
  const shape = shapeOf(schema) ?? {}
  return Object.entries(shape).map(([name, field]) => ({
    name,
    description: descriptionOf(field) ?? '',
    defaultText: defaultOf(field),
    required: !field.safeParse(undefined).success,
    secret: isSecret(field),
  }))
}

function defaultOf(field: z.ZodType): string | null {
  for (const layer of layersOf(field)) {
    if (layer instanceof z.ZodDefault) {
      const own = Object.getOwnPropertyDescriptor(layer.def, 'defaultValue')
      // A computed default differs by machine; its description says what it is.
      if (own?.get !== undefined && descriptionOf(field)?.includes('Default:') === true) return 'computed'
      return String(layer.def.defaultValue)
    }
  }
  return null
}

/** Both sides of a schema as far as `optional`, `default`, `transform` and `pipe` wrap it. */
function layersOf(field: z.ZodType): readonly z.ZodType[] {
  const inner: z.ZodType[] = []
  if (field instanceof z.ZodDefault || field instanceof z.ZodOptional || field instanceof z.ZodNullable) {
    inner.push(field.unwrap() as z.ZodType)
  } else if (field instanceof z.ZodPipe) inner.push(field.in as z.ZodType, field.out as z.ZodType)
  return [field, ...inner.flatMap(layersOf)]
}

function isSecret(field: z.ZodType): boolean {
  return layersOf(field).some(layer => secretSchemas.get(layer) !== undefined)
}

function descriptionOf(field: z.ZodType): string | null {
  return layersOf(field).find(layer => layer.description !== undefined)?.description ?? null
}

function shapeOf(schema: z.ZodType): Record<string, z.ZodType> | null {
  const layer = layersOf(schema).find(candidate => candidate instanceof z.ZodObject)
  return layer instanceof z.ZodObject ? (layer.shape as Record<string, z.ZodType>) : null
}

function fieldOf(schema: z.ZodType, name: string): z.ZodType | null {
  return shapeOf(schema)?.[name] ?? null
}

export function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const item of Object.values(value)) deepFreeze(item)
  }
  return value
}
