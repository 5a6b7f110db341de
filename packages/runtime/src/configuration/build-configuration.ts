import { createHash } from 'node:crypto'
import type {
  AgentConfiguration,
  AnalystConfiguration,
  BudgetConfiguration,
  BusinessKeyRule,
  ClientConfiguration,
  EventPaths,
  RouteConfiguration,
  SecretReference,
  SourceConfiguration,
  TypeWindow,
  WeirConfiguration,
} from '@weir/core'
import type { ConfigurationDocument } from './document-schema.ts'
import type { SecretResolver } from './secrets.ts'

/** The services' view of a document that passed all checks; a secret that cannot be resolved is a problem of the resolver. */
export async function buildConfiguration(
  document: ConfigurationDocument,
  resolver: SecretResolver,
): Promise<WeirConfiguration> {
  const rules = {
    tenants: document.tenants,
    sources: await mapNamed(document.sources, async (name, source) => await buildSource(name, source, resolver)),
    clients: await mapNamed(document.clients, async (name, client) => await buildClient(name, client, resolver)),
    agents: await mapNamed(document.agents, async (name, agent) => await buildAgent(name, agent, resolver)),
    routes: Object.entries(document.routes).map(([name, route]) => buildRoute(name, route)),
    budgets: Object.entries(document.budgets).map(([name, budget]) => buildBudget(name, budget)),
    analysts: await mapNamed(document.analysts, async (name, analyst) => await buildAnalyst(name, analyst, resolver)),
  }
  return { ...rules, version: versionOf(rules) }
}

async function mapNamed<In, Out>(
  items: Readonly<Record<string, In>>,
  build: (name: string, item: In) => Promise<Out>,
): Promise<Out[]> {
  const built: Out[] = []
  for (const [name, item] of Object.entries(items)) built.push(await build(name, item))
  return built
}

async function buildSource(
  name: string,
  source: ConfigurationDocument['sources'][string],
  resolver: SecretResolver,
): Promise<SourceConfiguration> {
  const secrets: SecretReference[] = []
  for (const [i, reference] of source.secrets.entries()) {
    const resolved = await resolver.secret(reference, ['sources', name, 'secrets', i])
    if (resolved) secrets.push(resolved)
  }
  const { hmac, key, type } = source
  return {
    name,
    tenant: source.tenant,
    provider: source.provider,
    secrets,
    hmac: hmac
      ? {
          header: hmac.header,
          prefix: hmac.prefix,
          algorithm: hmac.algorithm,
          encoding: hmac.encoding,
          template: hmac.template,
          timestampHeader: hmac.timestampHeader ?? null,
          toleranceSeconds: hmac.tolerance,
        }
      : null,
    key: key ? { header: key.header ?? null, body: key.body ?? null, fingerprint: key.fingerprint ?? [] } : null,
    type: type ? { header: type.header ?? null, body: type.body ?? null } : null,
    paths: buildPaths(source),
    businessKey: buildBusinessKey(source.businessKey),
    windowSeconds: source.window,
    typeWindows: buildTypeWindows(source.typeWindows),
    onPayloadChange: source.onPayloadChange,
    maxBodyBytes: source.maxBody,
  }
}

async function buildClient(
  name: string,
  client: ConfigurationDocument['clients'][string],
  resolver: SecretResolver,
): Promise<ClientConfiguration> {
  return {
    name,
    tenant: client.tenant,
    keySha256: (await resolver.keyHash(client.keySha256, ['clients', name, 'keySha256'])) ?? '',
    onDuplicate: client.onDuplicate,
    paths: buildPaths(client),
    businessKey: buildBusinessKey(client.businessKey),
    windowSeconds: client.window,
    typeWindows: buildTypeWindows(client.typeWindows),
    maxBodyBytes: client.maxBody,
  }
}

function buildTypeWindows(rules: ConfigurationDocument['sources'][string]['typeWindows']): TypeWindow[] {
  return rules.map(({ types, window }) => ({ types, windowSeconds: window }))
}

async function buildAnalyst(
  name: string,
  analyst: ConfigurationDocument['analysts'][string],
  resolver: SecretResolver,
): Promise<AnalystConfiguration> {
  const keySha256 = (await resolver.keyHash(analyst.keySha256, ['analysts', name, 'keySha256'])) ?? ''
  return { name, tenants: analyst.tenants, keySha256 }
}

async function buildAgent(
  name: string,
  { tenant, outcomes, keySha256 }: ConfigurationDocument['agents'][string],
  resolver: SecretResolver,
): Promise<AgentConfiguration> {
  const path = ['agents', name, 'keySha256']
  return { name, tenant, outcomes, keySha256: keySha256 === undefined ? null : await resolver.keyHash(keySha256, path) }
}

function buildRoute(name: string, route: ConfigurationDocument['routes'][string]): RouteConfiguration {
  const { attempts, backoff, deadline, ...rest } = route
  return { name, ...rest, maxAttempts: attempts, backoffSeconds: backoff, deadlineSeconds: deadline }
}

function buildBudget(name: string, budget: ConfigurationDocument['budgets'][string]): BudgetConfiguration {
  if (budget.kind === 'ceiling') return { name, ...budget }
  const { period, burst, ...rest } = budget
  return { name, ...rest, periodSeconds: period, burst: burst ?? budget.limit }
}

type OptionalPaths = { readonly [Path in keyof EventPaths]?: string | undefined }

function buildPaths(item: OptionalPaths): EventPaths {
  return {
    subject: item.subject ?? null,
    object: item.object ?? null,
    version: item.version ?? null,
    run: item.run ?? null,
    eventTime: item.eventTime ?? null,
  }
}

function buildBusinessKey(
  rule: { readonly space: string; readonly paths: string[] } | undefined,
): BusinessKeyRule | null {
  return rule ? { space: rule.space, paths: rule.paths } : null
}

/** SHA-256 over JSON with sorted names, so that order and layout of the file do not matter; secrets and key hashes are left out. */
function versionOf(rules: Omit<WeirConfiguration, 'version'>): string {
  return createHash('sha256').update(canonical(rules)).digest('hex')
}

const unversioned = new Set(['secrets', 'keySha256'])
/** Lists of named things: their order in the file has no meaning. */
const byName = (a: { name: string }, b: { name: string }): number => (a.name < b.name ? -1 : 1)

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${sortNamed(value).map(canonical).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const names = Object.keys(value)
    .filter(name => !unversioned.has(name))
    .toSorted()
  const fields = value as Readonly<Record<string, unknown>>
  return `{${names.map(name => `${JSON.stringify(name)}:${canonical(fields[name])}`).join(',')}}`
}

function sortNamed(items: readonly unknown[]): readonly unknown[] {
  const isNamed = (item: unknown): item is { name: string } =>
    typeof item === 'object' && item !== null && 'name' in item
  return items.every(isNamed) ? items.toSorted(byName) : items
}
