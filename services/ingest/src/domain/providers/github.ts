import { createHmac } from 'node:crypto'
import { singleHeader } from '../header-map.ts'
import { defaultToleranceSeconds, noBytes, refused, type Provider } from './scheme.ts'

const signatureHeader = 'x-hub-signature-256'
const prefix = 'sha256='

/** GitHub: `X-Hub-Signature-256: sha256=<hex>` over the body. No time, and the delivery id is not signed. */
export const github: Provider = {
  scheme: () => ({
    algorithm: 'sha256',
    encoding: 'hex',
    toleranceSeconds: defaultToleranceSeconds,
    read: headers => {
      const signature = singleHeader(headers, signatureHeader)
      if (signature.kind === 'absent') return refused('missing_signature')
      if (signature.kind === 'many') return refused('repeated_header')
      if (!signature.value.startsWith(prefix)) return refused('malformed_signature')
      const candidates = [signature.value.slice(prefix.length)]
      return { kind: 'read', candidates, timestamp: null, before: noBytes, after: noBytes }
    },
  }),
  secretBytes: value => (value === '' ? null : Buffer.from(value, 'utf8')),
  identity: {
    key: { header: 'x-github-delivery', body: null, fingerprint: [] },
    keyHeaderAliases: [],
    type: { header: 'x-github-event', body: null },
    typeSuffix: '/action',
    eventTime: null,
    keyHeaderSigned: () => false,
    formField: 'payload',
    alwaysJson: true,
    headers: [
      'x-github-event',
      'x-github-delivery',
      'x-github-hook-id',
      'x-github-hook-installation-target-id',
      'x-github-hook-installation-target-type',
    ],
  },
  sign: ({ secret, body, id, type }) => ({
    'content-type': 'application/json',
    'x-github-delivery': id,
    'x-github-event': type ?? 'ping',
    'x-hub-signature-256': prefix + createHmac('sha256', secret).update(body).digest('hex'),
  }),
}
