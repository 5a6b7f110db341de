import { createHmac } from 'node:crypto'
import { headerBytes, singleHeader } from '../header-map.ts'
import { defaultToleranceSeconds, maxCandidates, noBytes, refused, type Provider } from './scheme.ts'

/**
 * Stripe: `Stripe-Signature: t=<seconds>,v1=<hex>[,v1=<hex>]` over `<t>.<body>`. The key is the whole `whsec_` text, not
 * decoded. Each retry has a new `t` and signature; the body's `id` stays. `v0` is ignored.
 */
export const stripe: Provider = {
  scheme: () => ({
    algorithm: 'sha256',
    encoding: 'hex',
    toleranceSeconds: defaultToleranceSeconds,
    read: headers => {
      const signature = singleHeader(headers, 'stripe-signature')
      if (signature.kind === 'absent') return refused('missing_signature')
      if (signature.kind === 'many') return refused('repeated_header')
      const items = signature.value.split(',', maxCandidates + 1)
      if (items.length > maxCandidates) return refused('malformed_signature')
      const candidates = valuesOf(items, 'v1')
      const [timestamp, second] = valuesOf(items, 't')
      if (timestamp === undefined) return refused('missing_timestamp')
      if (second !== undefined) return refused('malformed_timestamp')
      if (candidates.length === 0) return refused('missing_signature')
      return { kind: 'read', candidates, timestamp, before: headerBytes(`${timestamp}.`), after: noBytes }
    },
  }),
  secretBytes: value => (value === '' || value === 'whsec_' ? null : Buffer.from(value, 'utf8')),
  identity: {
    key: { header: null, body: '/id', fingerprint: [] },
    keyHeaderAliases: [],
    type: { header: null, body: '/type' },
    typeSuffix: null,
    eventTime: '/created',
    keyHeaderSigned: () => false,
    formField: null,
    alwaysJson: true,
    headers: [],
  },
  sign: ({ secret, body, nowMs }) => {
    const timestamp = String(Math.floor(nowMs / 1000))
    const mac = createHmac('sha256', secret).update(`${timestamp}.`).update(body).digest('hex')
    return { 'content-type': 'application/json; charset=utf-8', 'stripe-signature': `t=${timestamp},v1=${mac}` }
  },
}

function valuesOf(items: readonly string[], name: string): string[] {
  return items.filter(item => item.startsWith(`${name}=`)).map(item => item.slice(name.length + 1))
}
