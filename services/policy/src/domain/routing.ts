import { matches, type RouteConfiguration } from '@weir/core'

/** What a route looks at. */
export interface Routed {
  readonly tenant: string
  readonly source: string
  readonly type: string
}

export function takes(route: RouteConfiguration, { tenant, source, type }: Routed): boolean {
  if (route.tenant !== tenant) return false
  const isAmong = (patterns: readonly string[], text: string): boolean =>
    patterns.some(pattern => matches(pattern, text))
  return isAmong(route.sources, source) && isAmong(route.types, type)
}

/** Agents of every route that takes the event, each once, in the order of the configuration. */
export function routedAgents(routes: readonly RouteConfiguration[], event: Routed): string[] {
  return [...new Set(routes.filter(route => takes(route, event)).flatMap(({ agents }) => agents))]
}
