// The compose file gives each Weir process what its settings ask for, under the names it reads, and nothing else.
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { configSchema as auditSink } from '@weir/audit-sink'
import { configSchema as dedup } from '@weir/dedup'
import { configSchema as ingest } from '@weir/ingest'
import { configSchema as policy } from '@weir/policy'
import { loginName, serviceRoles } from '@weir/postgres'
import { describeSettings } from '@weir/runtime'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { configSchema as prepare } from '../packages/cli/src/commands/prepare.ts'

const at = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url))

/** Every Weir process of the compose file and the schema of its settings. */
const compared = { prepare, ingest, dedup, policy, 'audit-sink': auditSink }
/** Sections of weir.yaml whose secrets a process reads. */
const secretSections: Readonly<Record<string, readonly string[]>> = {
  ingest: ['sources', 'clients'],
  policy: ['agents'],
  'audit-sink': ['analysts'],
}

interface Compose {
  readonly services: Readonly<Record<string, { readonly image: string; readonly environment: Record<string, string> }>>
}
const { services } = parse(readFileSync(at('docker-compose.yml'), 'utf8'), { merge: true }) as Compose
const configuration = parse(readFileSync(at('weir.yaml'), 'utf8')) as Readonly<Record<string, unknown>>

describe('docker-compose.yml and the settings of the Weir processes', () => {
  it('are compared for every process', () => {
    const processes = Object.entries(services).filter(([, { image }]) => image.startsWith('weir:'))
    expect(Object.keys(compared)).toEqual(processes.map(([name]) => name))
    expect(readdirSync(at('services')).filter(name => !Object.keys(compared).includes(name))).toEqual([])
  })

  it.each(Object.entries(compared))('%s gets every setting it requires and none it does not know', (name, schema) => {
    const settings = describeSettings(schema)
    const secrets = (secretSections[name] ?? []).flatMap(section => environmentOf(configuration[section]))
    const given = Object.keys(services[name]?.environment ?? {})
    const required = [...settings.filter(setting => setting.required).map(setting => setting.name), ...secrets]
    expect(required.filter(setting => !given.includes(setting))).toEqual([])
    const known = [...settings.map(setting => setting.name), ...secrets]
    expect(given.filter(setting => !known.includes(setting))).toEqual([])
  })

  it.each(Object.entries(compared))('%s accepts the fixed values', (name, schema) => {
    const fixed = Object.entries(services[name]?.environment ?? {}).map(([setting, value]) => {
      const text = value.replaceAll(/\$\{[A-Z0-9_]+:-([^}]+)\}/g, '$1')
      return [setting, text.replaceAll(/\$\{[A-Z0-9_]+(:-)?\}/g, 'a-password-for-this-test')]
    })
    expect(schema.safeParse(Object.fromEntries(fixed)).error?.issues ?? []).toEqual([])
  })

  it('use the database logins that prepare makes', () => {
    const given = ['ingest', 'dedup', 'policy', 'audit-sink'].map(name => services[name]?.environment['DATABASE_URL'])
    const reader = services['audit-sink']?.environment['WEIR_AUDIT_READER_DATABASE_URL']
    const users = [...given, reader].map(url => /^postgres:\/\/([a-z_]+):/.exec(url ?? '')?.[1])
    expect(users).toEqual(serviceRoles.map(role => loginName('weir', role)))
  })

  it('are compared with teeth: a missing and a misspelt setting are seen', () => {
    const settings = describeSettings(dedup)
    const required = settings.filter(setting => setting.required).map(setting => setting.name)
    expect(required).toEqual(expect.arrayContaining(['WEIR_KAFKA_BROKERS', 'WEIR_SCHEMA_REGISTRY_URL', 'DATABASE_URL']))
    expect(settings.map(setting => setting.name)).not.toContain('WEIR_KAFKA_BROKER')
    expect(environmentOf(configuration['sources'])).toContain('WEIR_SECRET_GITHUB')
  })
})

/** Names in all `env: NAME` below a part of weir.yaml. */
function environmentOf(part: unknown): string[] {
  if (typeof part !== 'object' || part === null) return []
  return Object.entries(part).flatMap(([key, value]) =>
    key === 'env' && typeof value === 'string' ? [value] : environmentOf(value),
  )
}
