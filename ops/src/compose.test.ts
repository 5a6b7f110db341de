import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { validate, ValidationSeverity } from 'dockerfile-utils'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { versions } from './versions.ts'

interface ComposeService {
  readonly image: string
  readonly build?: { readonly dockerfile: string }
  readonly restart: string
  readonly read_only?: boolean
  readonly security_opt: readonly string[]
  readonly cap_drop?: readonly string[]
  readonly stop_grace_period: string
  readonly command?: readonly string[]
  readonly ports?: readonly string[]
  readonly volumes?: readonly string[]
  readonly healthcheck?: { readonly test: readonly string[] }
  readonly environment?: Readonly<Record<string, string>>
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>
}

const checkout = fileURLToPath(new URL('../../', import.meta.url))
const read = (path: string): string => readFileSync(join(checkout, path), 'utf8')
const composeText = read('docker-compose.yml')
const { services } = parse(composeText, { merge: true }) as { readonly services: Record<string, ComposeService> }
const all = Object.entries(services)
const backing = ['kafka', 'registry', 'postgres', 'redis']
const service = (name: string): ComposeService => {
  const found = services[name]
  if (found === undefined) throw new Error(`docker-compose.yml has no service ${name}`)
  return found
}

describe('docker-compose.yml', () => {
  it('has the backing services, the four services, their preparation and the two that watch', () => {
    const expected = [...backing, 'prepare', 'ingest', 'dedup', 'policy', 'audit-sink', 'prometheus', 'grafana']
    expect(Object.keys(services)).toEqual(expected)
  })

  it('runs the versions of the local stack', () => {
    expect(backing.map(name => service(name).image)).toEqual([
      `apache/kafka:${versions.kafka}`,
      `apicurio/apicurio-registry:${versions.apicurio}`,
      `postgres:${versions.postgresImage}`,
      `redis:${versions.redisImage}`,
    ])
  })

  it('names a version of every image', () => {
    expect(all.map(([, { image }]) => image).filter(image => !/^[a-z/-]+:v?\d+(\.\d+)*$/.test(image))).toEqual([])
    const { version } = JSON.parse(read('package.json')) as { readonly version: string }
    expect(service('ingest').image).toBe(`weir:${version}`)
  })

  it('checks the health of everything that keeps running', () => {
    const oneShot = all.filter(([, { restart }]) => restart === 'no').map(([name]) => name)
    expect(oneShot).toEqual(['prepare'])
    expect(all.filter(([, { healthcheck }]) => healthcheck?.test[0] !== 'CMD').map(([name]) => name)).toEqual(oneShot)
  })

  it('starts each service after what it needs is healthy, and the four after the preparation has succeeded', () => {
    const conditions = (name: string): Record<string, string> =>
      Object.fromEntries(Object.entries(service(name).depends_on ?? {}).map(([on, { condition }]) => [on, condition]))
    expect(conditions('prepare')).toEqual({
      kafka: 'service_healthy',
      registry: 'service_healthy',
      postgres: 'service_healthy',
    })
    const weir = ['ingest', 'dedup', 'policy', 'audit-sink']
    expect(weir.map(name => conditions(name)['prepare'])).toEqual(weir.map(() => 'service_completed_successfully'))
    const redisUsers = all
      .filter(([, { environment }]) => environment?.['REDIS_URL'] !== undefined)
      .map(([name]) => name)
    expect(redisUsers).toEqual(['ingest', 'policy'])
    expect(redisUsers.map(name => conditions(name)['redis'])).toEqual(['service_healthy', 'service_healthy'])
  })

  it('gives no process more rights than it needs', () => {
    const privileged = all.filter(([, { security_opt: options }]) => !options.includes('no-new-privileges:true'))
    expect(privileged.map(([name]) => name)).toEqual([])
    // Kafka's image writes its settings into its own folders at start, and so does the registry's.
    const writable = all.filter(([, { read_only: readOnly }]) => readOnly !== true).map(([name]) => name)
    expect(writable).toEqual(['kafka', 'registry'])
    // Postgres and Redis hand their data folder over to a user of their own at start.
    const capable = all.filter(([, { cap_drop: dropped }]) => !dropped?.includes('ALL')).map(([name]) => name)
    expect(capable).toEqual(['postgres', 'redis'])
  })

  it('gives every process longer to end than it takes at most', () => {
    expect(new Set(all.map(([, { stop_grace_period: grace }]) => grace))).toEqual(new Set(['30s']))
    expect(Number(service('ingest').environment?.['WEIR_SHUTDOWN_TIMEOUT_MS'])).toBeLessThan(30_000)
  })

  it('publishes ports on the loopback address only', () => {
    for (const port of all.flatMap(([, { ports }]) => ports ?? [])) {
      expect(port).toMatch(/^127\.0\.0\.1:\$\{WEIR_[A-Z]+_PORT:-\d+\}:\d+$/)
    }
  })

  it('holds no secret: every password, secret and key comes from the environment', () => {
    const given = all.flatMap(([name, { environment = {} }]) =>
      Object.entries(environment).map(([variable, value]) => ({ variable: `${name} ${variable}`, value })),
    )
    const secrets = given.filter(({ variable }) => /PASSWORD|SECRET|KEY|TOKEN/.test(variable))
    expect(secrets.length).toBeGreaterThan(10)
    expect(secrets.filter(({ value }) => !/^\$\{[A-Z0-9_]+:[-?][^}]*\}$/.test(value))).toEqual([])
    const urls = given.filter(({ value }) => /:\/\/[^/]*@/.test(value))
    expect(urls.length).toBe(6)
    const login = /^postgres:\/\/[a-z_]+:\$\{[A-Z_]+(:-)?\}@postgres:5432\/weir$/
    expect(urls.filter(({ value }) => !login.test(value))).toEqual([])
  })

  it('demands only the administrator’s password, so that the backing services start alone', () => {
    const demanded = [...composeText.matchAll(/\$\{([A-Z0-9_]+):?\?/g)].map(([, name]) => name)
    expect(demanded).toEqual(['POSTGRES_PASSWORD'])
    for (const name of backing) {
      expect(Object.keys(service(name).depends_on ?? {}).filter(on => !backing.includes(on))).toEqual([])
    }
  })

  it('does not let Grafana start with its published default password', async () => {
    const guard = (services['grafana'] as unknown as { readonly entrypoint: readonly string[] }).entrypoint
    const script = (guard[2] ?? '').replaceAll('$$', '$').replace('exec /run.sh', 'echo started')
    const start = (password: string) =>
      promisify(execFile)('/bin/sh', ['-c', script], { env: { GF_SECURITY_ADMIN_PASSWORD: password } })
    for (const password of ['', 'admin']) {
      await expect(start(password)).rejects.toMatchObject({
        code: 1,
        stderr: expect.stringContaining('WEIR_GRAFANA_PASSWORD'),
      })
    }
    await expect(start('a long enough one')).resolves.toMatchObject({ stdout: 'started\n' })
  })
})

describe('ops/Dockerfile', () => {
  const dockerfile = read('ops/Dockerfile')

  it('has no fault a linter finds', () => {
    const faults = validate(dockerfile).map(({ range, message, severity }) => ({
      line: range.start.line + 1,
      message,
      severity: severity === ValidationSeverity.ERROR ? 'error' : 'warning',
    }))
    expect(faults).toEqual([])
    expect(validate('FROM node:24\nCOPY a\nCMD node x').length).toBeGreaterThan(0)
  })

  it('copies the package.json of every workspace, without which npm ci refuses', () => {
    const groups = ['packages', 'services'].flatMap(group =>
      readdirSync(join(checkout, group)).map(name => `${group}/${name}`),
    )
    for (const workspace of [...groups, 'schemas', 'ops', 'test', 'bench']) {
      expect(dockerfile).toContain(`\nCOPY ${workspace}/package.json ${workspace}/\n`)
    }
  })

  it('runs node itself as an unprivileged user, so that SIGTERM reaches it', () => {
    const [, last = ''] = dockerfile.split(/\nFROM node:24-bookworm-slim\n/)
    expect(last).toMatch(/\nUSER node\n/)
    expect(last).toMatch(/\nENTRYPOINT \["node"\]\n/)
    for (const name of ['prepare', 'ingest', 'dedup', 'policy', 'audit-sink']) {
      expect(service(name).build?.dockerfile).toBe('ops/Dockerfile')
      expect(service(name).command?.[0]).toMatch(/^(packages\/cli|services\/[a-z-]+)\/src\/main\.ts$/)
    }
  })

  it('takes nothing into the image that is not named', () => {
    const rules = read('.dockerignore')
      .split('\n')
      .filter(line => line !== '' && !line.startsWith('#'))
    expect(rules[0]).toBe('*')
    expect(rules).toEqual(expect.arrayContaining(['**/node_modules', '**/.weir', '**/.env*']))
  })
})

describe('what Prometheus and Grafana show', () => {
  const dashboard = read('ops/grafana/dashboards/weir.json')

  it('is scraped from the port where the services answer', () => {
    const { scrape_configs: jobs } = parse(read('ops/prometheus/prometheus.yml')) as {
      readonly scrape_configs: readonly {
        readonly job_name: string
        readonly dns_sd_configs: readonly [{ readonly names: readonly string[]; readonly port: number }]
      }[]
    }
    const scraped = jobs.map(({ job_name: job, dns_sd_configs: [dns] }) => [job, dns.names, String(dns.port)])
    const expected = ['ingest', 'dedup', 'policy', 'audit-sink'].map(name => [
      name,
      [name],
      service(name).environment?.['WEIR_ADMIN_PORT'],
    ])
    expect(scraped).toEqual(expected)
  })

  it('names only metrics that are declared', () => {
    const declared = new Set(declaredMetrics())
    const used = [dashboard, read('ops/prometheus/alerts.yml')].flatMap(text => text.match(/\bweir_[a-z0-9_]+/g) ?? [])
    expect(used.length).toBeGreaterThan(10)
    const unknown = used.filter(name => !declared.has(name) && !declared.has(name.replace(/_(bucket|sum|count)$/, '')))
    expect(unknown).toEqual([])
  })

  it('comes from the provisioned data source', () => {
    const { datasources } = parse(read('ops/grafana/provisioning/datasources/prometheus.yml')) as {
      readonly datasources: readonly { readonly uid: string }[]
    }
    const uids = [...dashboard.matchAll(/"type": "prometheus",\s*"uid": "([^"]+)"/g)].map(([, uid]) => uid)
    expect(uids.length).toBeGreaterThan(0)
    expect(new Set(uids)).toEqual(new Set(datasources.map(({ uid }) => uid)))
  })
})

/** Full names of all metrics declared in the sources. */
function declaredMetrics(): readonly string[] {
  const files = ['packages', 'services'].flatMap(group =>
    readdirSync(join(checkout, group), { recursive: true, encoding: 'utf8' })
      .filter(path => path.endsWith('.ts') && !path.endsWith('.test.ts') && !path.includes('node_modules'))
      .map(path => `${group}/${path}`),
  )
  const declaration = /\.(?:counter|gauge|histogram)\(\s*'([a-z0-9_]+)'/g
  return files.flatMap(file => [...read(file).matchAll(declaration)].map(([, name = '']) => `weir_${name}`))
}
