import { createHmac } from 'node:crypto'
import { headerBytes, singleHeader, type HeaderMap } from '../header-map.ts'
import { decodeBase64 } from '../mac.ts'
import { defaultToleranceSeconds, maxCandidates, noBytes, refused, type Provider } from './scheme.ts'

const secretPrefix = 'whsec_'

/**
 * Standard Webhooks and Svix: `webhook-signature: v1,<base64> …` over `<id>.<timestamp>.<body>`. The key is the base64 after
 * `whsec_`. The id is signed and stays over retries. `v1a` (ed25519) is another scheme and never stands in for `v1`.
 */
export const standardWebhooks: Provider = {
  scheme: () => ({
    algorithm: 'sha256',
    encoding: 'base64',
    toleranceSeconds: defaultToleranceSeconds,
    read: headers => {
      // All three headers come from one family: a mixture is nobody's message.
      const family = headers['webhook-signature'] === undefined ? 'svix' : 'webhook'
      const signature = singleHeader(headers, `${family}-signature`)
      const id = singleHeader(headers, `${family}-id`)
      const timestamp = singleHeader(headers, `${family}-timestamp`)
      if (signature.kind === 'absent') return refused('missing_signature')
      if (id.kind === 'absent' || (id.kind === 'one' && id.value === '')) return refused('missing_id')
      if (timestamp.kind === 'absent') return refused('missing_timestamp')
      if (signature.kind === 'many' || id.kind === 'many' || timestamp.kind === 'many' || mixed(headers)) {
        return refused('repeated_header')
      }
      const items = signature.value.split(' ', maxCandidates + 1)
      if (items.length > maxCandidates) return refused('malformed_signature')
      const candidates = items.filter(item => item.startsWith('v1,')).map(item => item.slice(3))
      if (candidates.length === 0) return refused('missing_signature')
      return {
        kind: 'read',
        candidates,
        timestamp: timestamp.value,
        before: headerBytes(`${id.value}.${timestamp.value}.`),
        after: noBytes,
      }
    },
  }),
  secretBytes: value => {
    const bytes = decodeBase64(value.startsWith(secretPrefix) ? value.slice(secretPrefix.length) : value)
    return bytes === null || bytes.length === 0 ? null : bytes
  },
  identity: {
    key: { header: 'webhook-id', body: null, fingerprint: [] },
    keyHeaderAliases: ['svix-id'],
    type: { header: null, body: '/type' },
    typeSuffix: null,
    eventTime: '/timestamp',
    keyHeaderSigned: () => true,
    formField: null,
    alwaysJson: true,
    headers: ['webhook-id', 'webhook-timestamp', 'svix-id', 'svix-timestamp'],
  },
  sign: ({ secret, body, nowMs, id }) => {
    const timestamp = String(Math.floor(nowMs / 1000))
    const key = Buffer.from(secret.startsWith(secretPrefix) ? secret.slice(secretPrefix.length) : secret, 'base64')
    const mac = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')
    return {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,${mac}`,
    }
  },
}

function mixed(headers: HeaderMap): boolean {
  const has = (family: string): boolean =>
    ['id', 'timestamp', 'signature'].some(name => headers[`${family}-${name}`] !== undefined)
  return has('webhook') && has('svix')
}
