import type { ConfigurationDocument } from './document-schema.ts'
import { didYouMean } from './near-miss.ts'
import type { ConfigPath, Problem } from './problems.ts'

type Provider = ConfigurationDocument['sources'][string]['provider']

const secondsPerDay = 86_400
/** How long each provider may repeat a delivery by itself. */
const retryDays: Record<Provider, number> = { github: 3, stripe: 3, 'standard-webhooks': 3, hmac: 3 }
/** Beyond the provider's own retries: time for people to resend by hand and for us to be down. */
const marginDays = 7

/** Rules that join several settings. All are checked; each problem names the setting to change. */
export function crossCheck(document: ConfigurationDocument): readonly Problem[] {
  return [
    ...repeatedNames(document),
    ...unknownTenants(document),
    ...Object.entries(document.sources).flatMap(([name, source]) => checkSource(name, source)),
    ...Object.entries(document.clients).flatMap(([name, client]) => checkClient(name, client)),
    ...Object.entries(document.routes).flatMap(([name, route]) => checkRoute(document, name, route)),
    ...Object.entries(document.budgets).flatMap(([name, budget]) => checkBudget(name, budget)),
  ]
}

function repeatedNames(document: ConfigurationDocument): Problem[] {
  const problems = repeats(document.tenants, ['tenants'])
  for (const name of Object.keys(document.clients)) {
    if (Object.hasOwn(document.sources, name)) {
      problems.push({
        path: ['clients', name],
        message: 'a source has this name too; the name of a client is the source of its events: rename one of them',
      })
    }
  }
  for (const [name, route] of Object.entries(document.routes)) {
    problems.push(...repeats(route.sources, ['routes', name, 'sources']))
    problems.push(...repeats(route.types, ['routes', name, 'types']))
    problems.push(...repeats(route.agents, ['routes', name, 'agents']))
  }
  for (const [name, budget] of Object.entries(document.budgets)) {
    problems.push(...repeats(budget.tenants, ['budgets', name, 'tenants']))
  }
  return problems
}

function repeats(names: readonly string[], path: ConfigPath): Problem[] {
  return names.flatMap((name, i) =>
    names.indexOf(name) < i ? [{ path: [...path, i], message: `"${name}" stands here twice: remove one` }] : [],
  )
}

function unknownTenants(document: ConfigurationDocument): Problem[] {
  const used: { path: ConfigPath; tenant: string }[] = []
  for (const kind of ['sources', 'clients', 'agents', 'routes'] as const) {
    for (const [name, item] of Object.entries(document[kind]))
      used.push({ path: [kind, name, 'tenant'], tenant: item.tenant })
  }
  for (const kind of ['budgets', 'analysts'] as const) {
    for (const [name, item] of Object.entries(document[kind])) {
      for (const [i, tenant] of item.tenants.entries()) {
        if (tenant !== '*') used.push({ path: [kind, name, 'tenants', i], tenant })
      }
    }
  }
  return used
    .filter(({ tenant }) => !document.tenants.includes(tenant))
    .map(({ path, tenant }) => ({
      path,
      message: `"${tenant}" is not in the list of tenants.${didYouMean(tenant, document.tenants)} Add it there or correct it`,
    }))
}

function checkSource(name: string, source: ConfigurationDocument['sources'][string]): Problem[] {
  const path: ConfigPath = ['sources', name]
  const problems: Problem[] = [...checkVersionPath(path, source)]
  const isHmac = source.provider === 'hmac'
  if (isHmac && !source.hmac) {
    problems.push({
      path,
      message: 'provider hmac needs `hmac`: say in which header the signature stands and how it is made',
    })
  }
  if (isHmac && !source.key) {
    problems.push({ path, message: 'provider hmac needs `key`: say where the id of an event stands' })
  }
  if (!isHmac && source.hmac) {
    problems.push({
      path: [...path, 'hmac'],
      message: `provider ${source.provider} has its own signature scheme: remove \`hmac\`, or use provider hmac`,
    })
  }
  if (source.hmac?.template.includes('{timestamp}') === true && source.hmac.timestampHeader === undefined) {
    problems.push({
      path: [...path, 'hmac', 'template'],
      message: 'signs {timestamp}: name its header in `timestampHeader`',
    })
  }
  const retried = retryDays[source.provider]
  const why = `${source.provider} may repeat for ${retried} days, and ${marginDays} days are kept on top`
  return [...problems, ...checkWindows(path, source, { leastDays: retried + marginDays, why })]
}

function checkClient(name: string, client: ConfigurationDocument['clients'][string]): Problem[] {
  const path: ConfigPath = ['clients', name]
  const why = `a repeat must be recognised for ${marginDays} days`
  return [...checkVersionPath(path, client), ...checkWindows(path, client, { leastDays: marginDays, why })]
}

interface Windows {
  readonly window: number
  readonly typeWindows: readonly { readonly window: number }[]
}

function checkWindows(path: ConfigPath, item: Windows, least: { leastDays: number; why: string }): Problem[] {
  const windows: [ConfigPath, number][] = [
    [[...path, 'window'], item.window],
    ...item.typeWindows.map((rule, i): [ConfigPath, number] => [[...path, 'typeWindows', i, 'window'], rule.window]),
  ]
  return windows
    .filter(([, window]) => window < least.leastDays * secondsPerDay)
    .map(([where, window]) => ({
      path: where,
      message: `${daysText(window)} is too short: ${least.why}. Set at least ${least.leastDays}d`,
    }))
}

function checkVersionPath(
  path: ConfigPath,
  item: { version?: string | undefined; object?: string | undefined },
): Problem[] {
  if (item.version === undefined || item.object !== undefined) return []
  return [
    { path: [...path, 'version'], message: 'a version is compared per object: name the object’s path in `object`' },
  ]
}

function checkRoute(
  document: ConfigurationDocument,
  name: string,
  route: ConfigurationDocument['routes'][string],
): Problem[] {
  const path: ConfigPath = ['routes', name]
  const origins = new Map<string, { readonly tenant: string }>([
    ...Object.entries(document.sources),
    ...Object.entries(document.clients),
  ])
  const agents = new Map(Object.entries(document.agents))
  return [
    ...ownedBy(route.tenant, route.sources, { kind: 'source or client', known: origins, path: [...path, 'sources'] }),
    ...ownedBy(route.tenant, route.agents, { kind: 'agent', known: agents, path: [...path, 'agents'] }),
  ]
}

function ownedBy(
  tenant: string,
  names: readonly string[],
  of: { kind: string; known: ReadonlyMap<string, { tenant: string }>; path: ConfigPath },
): Problem[] {
  return names.flatMap((name, i) => {
    const item = of.known.get(name)
    if (item?.tenant === tenant) return []
    const message = item
      ? `the ${of.kind} "${name}" belongs to tenant "${item.tenant}", the route to "${tenant}": a route stays within one tenant`
      : `there is no ${of.kind} "${name}".${didYouMean(name, [...of.known.keys()])} Define it or correct the name`
    return [{ path: [...of.path, i], message }]
  })
}

function checkBudget(name: string, budget: ConfigurationDocument['budgets'][string]): Problem[] {
  const path: ConfigPath = ['budgets', name]
  if (budget.kind === 'rate') {
    if (budget.burst === undefined || budget.burst <= budget.limit) return []
    return [
      { path: [...path, 'burst'], message: `${budget.burst} is more than the limit of ${budget.limit}: lower it` },
    ]
  }
  if (budget.onExhaust === 'deny' || budget.window !== 'none') return []
  return [
    {
      path: [...path, 'onExhaust'],
      message: 'without a window nothing deferred would ever be due: use deny, or set a window',
    },
  ]
}

function daysText(seconds: number): string {
  const days = seconds / secondsPerDay
  return days >= 1 ? `${Math.floor(days * 10) / 10} days` : `${seconds} seconds`
}
