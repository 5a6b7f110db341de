import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { hasCode } from '@weir/core'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLog } from '../log.ts'
import { document, env, hash, parse } from '../testing/configuration-document.ts'
import { checkConfiguration, loadConfiguration } from './load-configuration.ts'

/** The problems of a document that must not load, one line each. */
async function problems(value: unknown, environment: NodeJS.ProcessEnv = env): Promise<string[]> {
  try {
    await parse(value, environment)
  } catch (error) {
    if (!hasCode(error, 'config_invalid')) throw error
    return String(error).split('\n').slice(1)
  }
  throw new Error('the document was accepted')
}

type Change = (value: ReturnType<typeof document>) => void

async function problemsAfter(change: Change): Promise<string> {
  const value = document()
  change(value)
  return (await problems(value)).join('\n')
}

describe('the example weir.yaml', () => {
  const path = fileURLToPath(new URL('../../../../weir.yaml', import.meta.url))

  it('loads, with everything the tour uses', async () => {
    const configuration = await loadConfiguration(path, env)
    expect(configuration.tenants).toEqual(['acme', 'globex'])
    expect(configuration.sources.map(source => [source.name, source.tenant, source.provider])).toEqual([
      ['github', 'acme', 'github'],
      ['stripe', 'acme', 'stripe'],
      ['shop', 'acme', 'standard-webhooks'],
      ['deploys', 'globex', 'hmac'],
    ])
    expect(configuration.sources.filter(source => source.businessKey?.space === 'order-stage')).toHaveLength(2)
    expect(configuration.agents.map(agent => agent.name)).toEqual(['triage', 'billing', 'watch', 'ops', 'refunds'])
    expect(configuration.budgets).toEqual([
      { name: 'globex-rate', kind: 'rate', scope: 'tenant', tenants: ['globex'], limit: 5, periodSeconds: 1, burst: 5 },
      { name: 'run-steps', kind: 'ceiling', scope: 'run', tenants: [], limit: 10, window: 'none', onExhaust: 'deny' },
      {
        name: 'acme-day',
        kind: 'ceiling',
        scope: 'tenant',
        tenants: ['acme'],
        limit: 100_000,
        window: 'day',
        onExhaust: 'deny',
      },
    ])
    expect(Object.isFrozen(configuration.sources[0]?.paths)).toBe(true)
  })

  it('lists every secret that is missing, with its line', async () => {
    const error = await loadConfiguration(path, {}).catch(String)
    for (const name of Object.keys(env)) {
      expect(error).toMatch(new RegExp(`weir\\.yaml:\\d+: .*the environment variable ${name} is not set`))
    }
  })

  it('can be checked where there are no secrets, with the same version', async () => {
    const { version, counts } = await checkConfiguration(path, {}, { secretsOf: [] })
    expect(version).toBe((await loadConfiguration(path, env)).version)
    expect(counts).toEqual({ tenants: 2, sources: 4, clients: 2, agents: 5, routes: 6, budgets: 3, analysts: 1 })
  })

  it('gives a service the secrets it needs and no others', async () => {
    const { WEIR_KEY_ANALYST_SHA256 } = env
    const configuration = await loadConfiguration(path, { WEIR_KEY_ANALYST_SHA256 }, { secretsOf: ['analysts'] })
    expect(configuration.analysts[0]?.keySha256).toBe(WEIR_KEY_ANALYST_SHA256)
    expect(configuration.sources.flatMap(source => source.secrets)).toEqual([])
    expect(configuration.clients.map(client => client.keySha256)).toEqual(['', ''])
  })

  it('that is not there is named with what to do', async () => {
    await expect(loadConfiguration('/nowhere/weir.yaml', env)).rejects.toThrow(
      'The configuration file /nowhere/weir.yaml cannot be read (ENOENT). Create it, or set WEIR_CONFIG to its path.',
    )
  })
})

describe('a document', () => {
  it('gets documented defaults', async () => {
    const { sources, clients, routes, budgets, agents } = await parse(document())
    expect(sources[0]).toMatchObject({
      windowSeconds: 30 * 86_400,
      maxBodyBytes: 1_048_576,
      onPayloadChange: 'flag',
      key: null,
    })
    expect(sources[1]).toMatchObject({
      hmac: {
        prefix: '',
        algorithm: 'sha256',
        encoding: 'hex',
        template: '{body}',
        timestampHeader: null,
        toleranceSeconds: 300,
      },
      key: { header: 'X-Event-Key', body: null, fingerprint: [] },
    })
    expect(clients[0]).toMatchObject({ onDuplicate: 'conflict', keySha256: env.WEIR_KEY_ACME_API_SHA256 })
    expect(routes[0]?.types).toEqual(['*'])
    expect(budgets[0]).toMatchObject({ burst: 5, tenants: [] })
    expect(agents[0]?.outcomes).toBe('off')
  })

  it('with broken YAML, or the same name twice, is refused with the line', async () => {
    expect(await problems('tenants: [a\n')).toEqual([expect.stringMatching(/^ {2}weir\.yaml:\d+: /)])
    const twice = 'tenants: [acme]\nagents:\n  triage: { tenant: acme }\n  triage: { tenant: acme }\n'
    expect(await problems(twice)).toEqual([expect.stringMatching(/^ {2}weir\.yaml:4: .*unique/)])
  })

  it('names line, setting, value and remedy of all problems at once, in the order of the file', async () => {
    const text = [
      'tenants: [acme]',
      'sources:',
      '  github:',
      '    tenant: acme',
      '    provider: gihub',
      '    secrets: [{ env: WEIR_SECRET_GITHUB }]',
      '    subjct: /repository/full_name',
      '    window: 30 days',
      'agents:',
      '  Triage: { tenant: acme }',
      '  watch: {}',
    ].join('\n')
    expect(await problems(text)).toEqual([
      expect.stringMatching(
        /^ {2}weir\.yaml:5: sources\.github\.provider: "gihub": one of github, stripe, .* is needed/,
      ),
      expect.stringMatching(
        /^ {2}weir\.yaml:7: sources\.github\.subjct: there is no such setting\. Did you mean "subject"\?/,
      ),
      expect.stringMatching(
        /^ {2}weir\.yaml:8: sources\.github\.window: "30 days": a time is a whole number with s, m, h or d/,
      ),
      expect.stringMatching(/^ {2}weir\.yaml:10: agents\.Triage: the name "Triage" is not allowed/),
      expect.stringMatching(/^ {2}weir\.yaml:11: agents\.watch\.tenant: is missing/),
    ])
  })

  it.each<[string, Change, RegExp]>([
    [
      'an unknown tenant',
      d => (d.agents['triage'] = { tenant: 'acmee' }),
      /agents\.triage\.tenant: "acmee" is not in the list of tenants\. Did you mean "acme"\?/,
    ],
    ['a tenant twice', d => (d['tenants'] = ['acme', 'globex', 'acme']), /tenants\[2\]: "acme" stands here twice/],
    [
      'a route to an unknown agent',
      d => (d.routes['all'] = { ...d.routes['all'], agents: ['triag'] }),
      /routes\.all\.agents\[0\]: there is no agent "triag"\. Did you mean "triage"\?/,
    ],
    [
      'a route to another tenant’s agent',
      d => (d.routes['all'] = { ...d.routes['all'], agents: ['ops'] }),
      /the agent "ops" belongs to tenant "globex", the route to "acme"/,
    ],
    [
      'a route from an unknown source',
      d => (d.routes['all'] = { ...d.routes['all'], sources: ['gitlab'] }),
      /routes\.all\.sources\[0\]: there is no source or client "gitlab"/,
    ],
    [
      'a route from another tenant’s source',
      d => (d.routes['all'] = { ...d.routes['all'], sources: ['deploys'] }),
      /the source or client "deploys" belongs to tenant "globex"/,
    ],
    [
      'a client named like a source',
      d => (d.clients['github'] = d.clients['acme-api'] ?? {}),
      /clients\.github: a source has this name too/,
    ],
    [
      'a window below retries and margin',
      d => (d.sources['github'] = { ...d.sources['github'], window: '9d' }),
      /sources\.github\.window: 9 days is too short: github may repeat for 3 days, and 7 days are kept on top\. Set at least 10d/,
    ],
    [
      'a window of some types below retries and margin',
      d => (d.sources['github'] = { ...d.sources['github'], typeWindows: [{ types: ['push'], window: '9d' }] }),
      /sources\.github\.typeWindows\[0\]\.window: 9 days is too short/,
    ],
    [
      'a window that no log-append time reaches',
      d => (d.sources['github'] = { ...d.sources['github'], window: '4000d' }),
      /sources\.github\.window: .*at most 3650d/,
    ],
    [
      'a client’s window below a week',
      d => (d.clients['acme-api'] = { ...d.clients['acme-api'], window: '12h' }),
      /clients\.acme-api\.window: 43200 seconds is too short/,
    ],
    [
      'hmac without its scheme',
      d => delete d.sources['deploys']?.['hmac'],
      /sources\.deploys: provider hmac needs `hmac`/,
    ],
    ['hmac without a key', d => delete d.sources['deploys']?.['key'], /sources\.deploys: provider hmac needs `key`/],
    [
      'a scheme for github',
      d => (d.sources['github'] = { ...d.sources['github'], hmac: { header: 'X' } }),
      /sources\.github\.hmac: provider github has its own signature scheme/,
    ],
    [
      'a template without the body',
      d => (d.sources['deploys'] = { ...d.sources['deploys'], hmac: { header: 'X', template: '{id}' } }),
      /template: "\{id\}": must contain \{body\}/,
    ],
    [
      'a signed time without its header',
      d => (d.sources['deploys'] = { ...d.sources['deploys'], hmac: { header: 'X', template: '{timestamp}.{body}' } }),
      /name its header in `timestampHeader`/,
    ],
    [
      'a version without an object',
      d => (d.sources['github'] = { ...d.sources['github'], version: '/v' }),
      /sources\.github\.version: a version is compared per object/,
    ],
    [
      'a burst above the limit',
      d => (d.budgets['rate'] = { ...d.budgets['rate'], burst: 6 }),
      /budgets\.rate\.burst: 6 is more than the limit of 5/,
    ],
    [
      'a period of nothing',
      d => (d.budgets['rate'] = { ...d.budgets['rate'], period: '0s' }),
      /budgets\.rate\.period: "0s": must be more than zero/,
    ],
    ['a limit of nothing', d => (d.budgets['rate'] = { ...d.budgets['rate'], limit: 0 }), /budgets\.rate\.limit: 0: /],
    [
      'a budget of no kind',
      d => (d.budgets['rate'] = { ...d.budgets['rate'], kind: 'rates' }),
      /budgets\.rate\.kind: .*rate, ceiling/,
    ],
    [
      'deferring for ever',
      d => (d.budgets['c'] = { kind: 'ceiling', scope: 'run', limit: 1, window: 'none', onExhaust: 'defer' }),
      /budgets\.c\.onExhaust: without a window nothing deferred would ever be due/,
    ],
    [
      'a budget’s unknown tenant',
      d => (d.budgets['rate'] = { ...d.budgets['rate'], tenants: ['initech'] }),
      /budgets\.rate\.tenants\[0\]: "initech" is not in the list/,
    ],
    [
      'a star among tenants',
      d => (d.analysts['ops'] = { ...d.analysts['ops'], tenants: ['*', 'acme'] }),
      /analysts\.ops\.tenants/,
    ],
    [
      'a path without a slash',
      d => (d.sources['github'] = { ...d.sources['github'], subject: 'repository' }),
      /sources\.github\.subject: "repository": a path starts with a slash/,
    ],
    [
      'a star inside a type',
      d => (d.routes['all'] = { ...d.routes['all'], types: ['a*b'] }),
      /routes\.all\.types\[0\]: "a\*b": a \* may only stand at the end/,
    ],
    [
      'a body above the bound',
      d => (d.sources['github'] = { ...d.sources['github'], maxBody: '2MiB' }),
      /sources\.github\.maxBody: "2MiB": must be from 1B to 1536KiB/,
    ],
    [
      'a secret both by variable and file',
      d => (d.sources['github'] = { ...d.sources['github'], secrets: [{ env: 'A', file: 'b' }] }),
      /secrets\[0\]: a map: give either env: NAME or file: PATH/,
    ],
    ['a name of 65 letters', d => (d.agents['a'.repeat(65)] = { tenant: 'acme' }), /the name "a{65}" is not allowed/],
  ])('with %s is refused', async (_, change, message) => {
    expect(await problemsAfter(change)).toMatch(message)
  })
})

describe('secrets', () => {
  it('come from variables and files, with their names and expiry', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'weir-secret-'))
    const file = join(directory, 'github-2026')
    await writeFile(file, 'a-secret-from-a-file-of-length\n')
    const value = document()
    const secrets = [{ file }, { env: 'WEIR_SECRET_GITHUB', id: 'old', notAfter: '2027-01-01T00:00:00Z' }]
    value.sources['github'] = { ...value.sources['github'], secrets }
    const { sources } = await parse(value)
    await rm(directory, { recursive: true })
    expect(sources[0]?.secrets.map(secret => [secret.id, secret.value, secret.notAfterMs])).toEqual([
      ['github-2026', 'a-secret-from-a-file-of-length', null],
      ['old', env.WEIR_SECRET_GITHUB, Date.UTC(2027, 0, 1)],
    ])
  })

  it.each([
    ['', 'is not set'],
    [undefined, 'is not set'],
    ['short', 'has 5 bytes: a secret needs at least 16'],
    ["It's a Secret to Everybody", 'is a published default'],
    ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLjSw', 'is a published default'],
    ['CHANGE-ME-PLEASE', 'is a published default'],
  ])('such as %s are refused', async (secret, message) => {
    const found = await problems(document(), { ...env, WEIR_SECRET_GITHUB: secret })
    expect(found).toHaveLength(1)
    expect(found[0]).toContain('sources.github.secrets[0]')
    expect(found[0]).toMatch(message === 'is not set' ? /is not set|is empty/ : new RegExp(message))
  })

  it('of a file that is not there are reported with its path', async () => {
    const value = document()
    value.sources['github'] = { ...value.sources['github'], secrets: [{ file: '/nowhere/secret' }] }
    expect((await problems(value)).join()).toContain('the file /nowhere/secret cannot be read (ENOENT)')
  })

  it.each([
    ['the key instead of its hash', 'my-plain-api-key', /is not a SHA-256 in hex/],
    ['the hash of nothing', hash(''), /hash of an empty or published key/],
    ['the hash of a published key', hash('changeme'), /hash of an empty or published key/],
  ])('for clients must not be %s', async (_, keySha256, message) => {
    const found = await problems(document(), { ...env, WEIR_KEY_ACME_API_SHA256: keySha256 })
    expect(found.join()).toMatch(message)
    expect(found.join()).not.toContain(keySha256)
  })

  it('stand in no log line, no JSON and no error, whatever the configuration', async () => {
    const secretText = fc.stringMatching(/^[a-zA-Z0-9+/=_-]{16,48}$/)
    const generated = fc.record({
      names: fc.uniqueArray(fc.stringMatching(/^[a-z0-9-]{1,12}$/), { minLength: 1, maxLength: 5 }),
      secrets: fc.array(secretText, { minLength: 10, maxLength: 10 }),
      breakIt: fc.constantFrom('nothing', 'window', 'agent'),
    })
    await fc.assert(
      fc.asyncProperty(generated, async ({ names, secrets, breakIt }) => {
        const environment = { ...env, ...Object.fromEntries(secrets.map((secret, i) => [`S_${i}`, secret])) }
        const value = document()
        for (const [i, name] of names.entries()) {
          value.sources[`s-${name}`] = {
            tenant: 'acme',
            provider: 'stripe',
            secrets: [{ env: `S_${i}` }, { env: `S_${i + 5}` }],
            ...(breakIt === 'window' ? { window: '1d' } : {}),
          }
        }
        if (breakIt === 'agent') value.routes['all'] = { ...value.routes['all'], agents: ['nobody'] }
        const lines: string[] = []
        const log = createLog({
          service: 'test',
          level: 'debug',
          destination: { write: line => void lines.push(line) },
        })
        try {
          const configuration = await parse(value, environment)
          log.info({ configuration }, 'configuration')
          for (const source of configuration.sources) log.child({ source }).info({ ...source }, 'source')
          for (const source of configuration.sources) for (const used of source.secrets) log.info({ used }, 'secret')
          lines.push(JSON.stringify(configuration))
        } catch (error) {
          log.error({ err: error }, 'not valid')
        }
        for (const secret of secrets) expect(lines.join('')).not.toContain(secret)
      }),
      { numRuns: 100 },
    )
  })
})
