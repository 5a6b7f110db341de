import { createHash } from 'node:crypto'
import type { WeirConfiguration } from '@weir/core'
import { stringify } from 'yaml'
import { parseConfiguration } from '../configuration/load-configuration.ts'

export const hash = (text: string): string => createHash('sha256').update(text).digest('hex')

export const env = {
  WEIR_SECRET_GITHUB: 'a-github-secret-of-good-length',
  WEIR_SECRET_STRIPE: 'whsec_a-stripe-secret-of-good-length',
  WEIR_SECRET_SHOP: 'whsec_YSBzaG9wIHNlY3JldCBvZiBnb29kIGxlbmd0aA==',
  WEIR_SECRET_DEPLOYS: 'a-deploys-secret-of-good-length',
  WEIR_KEY_ACME_API_SHA256: hash('a random acme key'),
  WEIR_KEY_GLOBEX_API_SHA256: hash('a random globex key'),
  WEIR_KEY_AGENT_REFUNDS_SHA256: hash('a random agent key'),
  WEIR_KEY_ANALYST_SHA256: hash('a random analyst key'),
}

/** A small valid document; tests change one thing. */
export function document(): Record<string, Record<string, Record<string, unknown>> | string[]> & {
  sources: Record<string, Record<string, unknown>>
  clients: Record<string, Record<string, unknown>>
  agents: Record<string, Record<string, unknown>>
  routes: Record<string, Record<string, unknown>>
  budgets: Record<string, Record<string, unknown>>
  analysts: Record<string, Record<string, unknown>>
} {
  return {
    tenants: ['acme', 'globex'],
    sources: {
      github: { tenant: 'acme', provider: 'github', secrets: [{ env: 'WEIR_SECRET_GITHUB' }] },
      deploys: {
        tenant: 'globex',
        provider: 'hmac',
        secrets: [{ env: 'WEIR_SECRET_DEPLOYS' }],
        hmac: { header: 'X-Signature' },
        key: { header: 'X-Event-Key' },
      },
    },
    clients: { 'acme-api': { tenant: 'acme', keySha256: { env: 'WEIR_KEY_ACME_API_SHA256' } } },
    agents: { triage: { tenant: 'acme' }, ops: { tenant: 'globex' } },
    routes: { all: { tenant: 'acme', sources: ['github', 'acme-api'], agents: ['triage'] } },
    budgets: { rate: { kind: 'rate', scope: 'tenant', limit: 5, period: '1s' } },
    analysts: { ops: { tenants: ['*'], keySha256: { env: 'WEIR_KEY_ANALYST_SHA256' } } },
  }
}

export async function parse(value: unknown, environment: NodeJS.ProcessEnv = env): Promise<WeirConfiguration> {
  const text = typeof value === 'string' ? value : stringify(value)
  return await parseConfiguration(text, { file: 'weir.yaml', env: environment })
}
