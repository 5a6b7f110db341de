import type { BusinessKeyRule, ClientConfiguration, SourceConfiguration } from '@weir/core'
import type { SourceRules } from '../ports.ts'
import { defaultWindowMs, windowOf, type SourceWindows } from './window.ts'

type Source = Pick<SourceConfiguration, 'name' | 'tenant' | 'windowSeconds' | 'typeWindows'> & {
  readonly businessKey: BusinessKeyRule | null
  readonly onPayloadChange?: 'flag' | 'park'
}

interface Rule {
  readonly windows: SourceWindows
  readonly onPayloadChange: 'flag' | 'park'
}

/** What the configuration says about sources and API clients, by tenant and name. */
export function createSourceRules(configuration: {
  readonly sources: readonly Pick<SourceConfiguration, keyof Source>[]
  readonly clients: readonly Pick<ClientConfiguration, Exclude<keyof Source, 'onPayloadChange'>>[]
}): SourceRules {
  const sources: readonly Source[] = [...configuration.sources, ...configuration.clients]
  const rules = new Map(sources.map(source => [idOf(source.tenant, source.name), ruleOf(source)]))
  const spaces = longestBySpace(sources)
  const windowMs: SourceRules['windowMs'] = ({ tenant, source, type }) =>
    windowOf(rules.get(idOf(tenant, source))?.windows, type)
  return {
    onPayloadChange: (tenant, source) => rules.get(idOf(tenant, source))?.onPayloadChange ?? 'flag',
    windowMs,
    // A holder of a business key is remembered as long as the most patient source that shares the key space.
    keptMs: event => {
      const own = windowMs(event)
      if (event.businessKey === null) return own
      return Math.max(own, spaces.get(idOf(event.tenant, event.businessKey.space)) ?? defaultWindowMs)
    },
  }
}

function ruleOf(source: Source): Rule {
  const byType = source.typeWindows.map(({ types, windowSeconds }) => ({ types, windowMs: windowSeconds * 1_000 }))
  return {
    windows: { windowMs: source.windowSeconds * 1_000, byType },
    onPayloadChange: source.onPayloadChange ?? 'flag',
  }
}

function longestBySpace(sources: readonly Source[]): ReadonlyMap<string, number> {
  const longest = new Map<string, number>()
  for (const { tenant, businessKey, windowSeconds, typeWindows } of sources) {
    if (businessKey === null) continue
    const id = idOf(tenant, businessKey.space)
    const seconds = [windowSeconds, ...typeWindows.map(rule => rule.windowSeconds)]
    longest.set(id, Math.max(longest.get(id) ?? 0, ...seconds.map(value => value * 1_000)))
  }
  return longest
}

/** Names hold no slash. */
function idOf(tenant: string, name: string): string {
  return `${tenant}/${name}`
}
