import { describe, expect, it } from 'vitest'
import { document, env, hash, parse } from '../testing/configuration-document.ts'

type Change = (value: ReturnType<typeof document>) => void

describe('the version', () => {
  const version = async (value: unknown, environment: NodeJS.ProcessEnv = env): Promise<string> =>
    (await parse(value, environment)).version

  it('is a SHA-256 that neither layout, order, defaults nor secrets change', async () => {
    const value = document()
    const first = await version(value)
    expect(first).toMatch(/^[0-9a-f]{64}$/)
    const reordered = Object.fromEntries(Object.entries(value).toReversed())
    reordered['agents'] = Object.fromEntries(Object.entries(value.agents).toReversed())
    expect(await version(JSON.stringify(reordered))).toBe(first)
    value.sources['github'] = { ...value.sources['github'], window: '720h', maxBody: '1024KiB' }
    expect(await version(value)).toBe(first)
    const rotated = {
      ...env,
      WEIR_SECRET_GITHUB: 'another-secret-of-good-length',
      WEIR_KEY_ACME_API_SHA256: hash('new'),
    }
    expect(await version(value, rotated)).toBe(first)
  })

  it.each<[string, Change]>([
    ['a limit', d => (d.budgets['rate'] = { ...d.budgets['rate'], limit: 6 })],
    ['a route', d => (d.routes['all'] = { ...d.routes['all'], types: ['issues.*'] })],
    ['a window', d => (d.sources['github'] = { ...d.sources['github'], window: '31d' })],
    ['an agent', d => (d.agents['more'] = { tenant: 'acme' })],
  ])('changes with %s', async (_, change) => {
    const value = document()
    change(value)
    expect(await version(value)).not.toBe(await version(document()))
  })
})
