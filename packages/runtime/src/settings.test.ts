import { hasCode } from '@weir/core'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  commonSettings,
  describeSettings,
  flagSetting,
  integerSetting,
  listSetting,
  readSettings,
  secret,
  settingsForLog,
} from './settings.ts'

const schema = z.object({
  ...commonSettings,
  EXTRA_TOKEN: secret(z.string().min(8)).optional().describe('A token.'),
  // The mark survives what is chained behind it.
  LATE_SECRET: secret(z.string()).describe('A secret described late.').optional(),
  FAST: flagSetting().default(false).describe('Whether to hurry.'),
})

const good = {
  WEIR_KAFKA_BROKERS: 'a:9092, [::1]:9093,',
  WEIR_SCHEMA_REGISTRY_URL: 'http://user:geheim@registry:8081',
  DATABASE_URL: 'postgres://ingest:geheim@db:5432/weir',
  REDIS_URL: 'redis://:geheim@cache:6379',
}

describe('readSettings', () => {
  it('reads text into types, fills in defaults and freezes', () => {
    const settings = readSettings(schema, { ...good, WEIR_ADMIN_PORT: '8081', FAST: 'true', UNRELATED: 'x' })
    expect(settings).toMatchObject({
      WEIR_KAFKA_BROKERS: ['a:9092', '[::1]:9093'],
      WEIR_ADMIN_PORT: 8081,
      WEIR_TOPIC_PREFIX: 'weir.',
      FAST: true,
    })
    expect(settings).not.toHaveProperty('UNRELATED')
    expect(Object.isFrozen(settings)).toBe(true)
    expect(Object.isFrozen(settings.WEIR_KAFKA_BROKERS)).toBe(true)
  })

  it('takes an empty variable as not set', () => {
    expect(readSettings(schema, { ...good, WEIR_ADMIN_PORT: '', EXTRA_TOKEN: '' }).WEIR_ADMIN_PORT).toBe(0)
    expect(() => readSettings(schema, { ...good, REDIS_URL: '' })).toThrow(
      'REDIS_URL is not set. Redis: redis://host:6379.',
    )
  })

  it('lists every bad setting with its value and what belongs there, and hides secrets', () => {
    const env = {
      ...good,
      WEIR_KAFKA_BROKERS: 'broker',
      WEIR_ADMIN_PORT: '1e3',
      DATABASE_URL: 'mysql://geheim',
      EXTRA_TOKEN: 'geheim',
    }
    const message = messageOf(() => readSettings(schema, env))
    expect(message).toContain('WEIR_KAFKA_BROKERS="broker": not of the form host:port. Kafka brokers')
    expect(message).toContain('WEIR_ADMIN_PORT="1e3": not a whole number')
    expect(message).toContain('DATABASE_URL=(hidden)')
    expect(message).toContain('EXTRA_TOKEN=(hidden)')
    expect(message).not.toContain('geheim')
  })

  it('refuses to ask for more copies in sync than there are', () => {
    const env = { ...good, WEIR_TOPIC_MIN_INSYNC_REPLICAS: '2' }
    expect(() => readSettings(schema, env)).toThrow('is more than WEIR_TOPIC_REPLICATION_FACTOR=1')
    expect(readSettings(schema, { ...env, WEIR_TOPIC_REPLICATION_FACTOR: '3' }).WEIR_TOPIC_MIN_INSYNC_REPLICAS).toBe(2)
  })

  it('checks bounds of numbers and items of lists', () => {
    const bounded = z.object({ N: integerSetting({ min: 1, max: 5 }), L: listSetting() })
    expect(readSettings(bounded, { N: '5', L: 'a' })).toEqual({ N: 5, L: ['a'] })
    expect(() => readSettings(bounded, { N: '6', L: ' , ' })).toThrow(/N="6".*\n.*L=" , "/)
  })
})

function messageOf(fn: () => unknown): string {
  try {
    fn()
  } catch (error) {
    if (hasCode(error, 'config_invalid')) return String(error)
    throw error
  }
  throw new Error('nothing was thrown')
}

describe('settingsForLog', () => {
  it('shows what is in effect, of secrets only whether they are set', () => {
    const shown = settingsForLog(schema, readSettings(schema, good))
    expect(shown).toMatchObject({ DATABASE_URL: 'set', REDIS_URL: 'set', WEIR_TOPIC_PARTITIONS: 6 })
    expect(JSON.stringify(shown)).not.toContain('geheim')
  })
})

describe('describeSettings', () => {
  it('tells of each setting whether it is needed, secret, and its default', () => {
    const described = describeSettings(schema)
    const of = (name: string): unknown => described.find(setting => setting.name === name)
    expect(of('DATABASE_URL')).toMatchObject({ required: true, secret: true, defaultText: null })
    expect(of('EXTRA_TOKEN')).toMatchObject({ required: false, secret: true, description: 'A token.' })
    expect(of('WEIR_TOPIC_PARTITIONS')).toMatchObject({ required: false, secret: false, defaultText: '6' })
    expect(of('LATE_SECRET')).toMatchObject({ secret: true })
    expect(described.every(setting => setting.description !== '')).toBe(true)
  })
})
