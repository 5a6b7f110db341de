import { describe, expect, it } from 'vitest'
import { chooseModes, noWayMessage } from './stack.ts'
import { stackNames } from './stack-urls.ts'

const urls = Object.fromEntries(stackNames.map(name => [name, 'there']))
const nothing = { engine: false, java: false }

describe('which way each service is to be had', () => {
  it('takes a URL in the environment before anything else', () => {
    const modes = chooseModes({ REDIS_URL: 'redis://elsewhere' }, { engine: true, java: true })
    expect(modes).toEqual({
      WEIR_KAFKA_BROKERS: 'container',
      WEIR_SCHEMA_REGISTRY_URL: 'container',
      DATABASE_URL: 'container',
      REDIS_URL: 'environment',
    })
  })

  it('takes native processes where no container engine answers', () => {
    expect(new Set(Object.values(chooseModes({}, { engine: false, java: true }) ?? {}))).toEqual(new Set(['native']))
  })

  it('needs neither an engine nor Java when all four URLs are set', () => {
    expect(new Set(Object.values(chooseModes(urls, nothing) ?? {}))).toEqual(new Set(['environment']))
  })

  it('needs no Java for Postgres and Redis', () => {
    const modes = chooseModes({ ...urls, DATABASE_URL: '', REDIS_URL: '' }, nothing)
    expect(modes).toMatchObject({ WEIR_KAFKA_BROKERS: 'environment', DATABASE_URL: 'native', REDIS_URL: 'native' })
  })

  it.each(['WEIR_KAFKA_BROKERS', 'WEIR_SCHEMA_REGISTRY_URL'])('finds no way when only %s is missing', name => {
    expect(chooseModes({ ...urls, [name]: '' }, nothing)).toBeNull()
  })

  it('says what to do for each of the three ways', () => {
    for (const part of ['Java 17', 'Maven', 'container engine', ...stackNames]) expect(noWayMessage).toContain(part)
  })
})
