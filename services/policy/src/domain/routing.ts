import type { RouteConfiguration } from '@weir/core'

/** `*` at the end of a pattern matches any rest, the empty one too. */
export function matches(pattern: string, text: string): boolean {
  return pattern.endsWith('*') ? text.startsWith(pattern.slice(0, -1)) : pattern === text
}

/** Agents of every route that takes the event, each once, in the order of the configuration. */
export function routedAgents(
  routes: readonly RouteConfiguration[],
  event: { readonly tenant: string; readonly source: string; readonly type: string },
): string[] {
  const agents = new Set<string>()
  for (const route of routes) {
    if (route.tenant !== event.tenant) continue
    if (!route.sources.some(pattern => matches(pattern, event.source))) continue
    if (!route.types.some(pattern => matches(pattern, event.type))) continue
    for (const agent of route.agents) agents.add(agent)
  }
  return [...agents]
}
