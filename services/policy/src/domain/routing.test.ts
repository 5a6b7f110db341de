import type { RouteConfiguration } from '@weir/core'
import { describe, expect, it } from 'vitest'
import { routedAgents } from './routing.ts'

const route = (agents: string[], types: string[], sources = ['github']): RouteConfiguration => ({
  name: agents.join('-'),
  tenant: 'acme',
  sources,
  types,
  agents,
  maxAttempts: 5,
  backoffSeconds: 10,
  deadlineSeconds: 900,
})
const event = (type: string, source = 'github', tenant = 'acme') => ({ type, source, tenant })

describe('routes', () => {
  const routes = [route(['triage'], ['*']), route(['watch', 'triage'], ['issues.*', 'push'])]

  it('send an event to the agents of every route it matches, each once', () => {
    expect(routedAgents(routes, event('issues.opened'))).toEqual(['triage', 'watch'])
    expect(routedAgents(routes, event('pushed'))).toEqual(['triage'])
  })

  it('of another tenant or source do not take it', () => {
    expect(routedAgents(routes, event('push', 'github', 'globex'))).toEqual([])
    expect(routedAgents(routes, event('push', 'gitlab'))).toEqual([])
  })
})
