import type { ClientConfiguration, EventPaths, HmacScheme, ProviderName, SourceConfiguration } from '@weir/core'
import { prepareBusinessKey, preparePaths } from '../event-draft.ts'
import type { ApiClient } from '../client-event.ts'
import type { HeaderMap } from '../header-map.ts'

export const noPaths: EventPaths = { subject: null, object: null, version: null, run: null, eventTime: null }

export const hmacScheme: HmacScheme = {
  header: 'X-Signature',
  prefix: 'sha256=',
  algorithm: 'sha256',
  encoding: 'hex',
  template: '{body}',
  timestampHeader: null,
  toleranceSeconds: 300,
}

export const timedHmacScheme: HmacScheme = {
  ...hmacScheme,
  template: '{timestamp},{body}',
  timestampHeader: 'X-Timestamp',
}

/** A source with sound defaults for tests. */
export function sourceOf(
  provider: ProviderName,
  secret: string,
  more: Partial<SourceConfiguration> = {},
): SourceConfiguration {
  return {
    name: provider,
    tenant: 'acme',
    provider,
    secrets: [{ id: 'first', value: secret, notAfterMs: null }],
    hmac: provider === 'hmac' ? hmacScheme : null,
    key: provider === 'hmac' ? { header: 'X-Event-Key', body: null, fingerprint: [] } : null,
    type: null,
    paths: noPaths,
    businessKey: null,
    windowSeconds: 2_592_000,
    typeWindows: [],
    onPayloadChange: 'flag',
    maxBodyBytes: 1_048_576,
    ...more,
  }
}

export function clientOf(more: Partial<ClientConfiguration> = {}): ApiClient {
  return {
    name: 'acme-api',
    tenant: 'acme',
    onDuplicate: more.onDuplicate ?? 'conflict',
    windowSeconds: 2_592_000,
    maxBodyBytes: 1_048_576,
    paths: preparePaths(more.paths ?? noPaths),
    businessKey: prepareBusinessKey(more.businessKey ?? null),
  }
}

/** Headers as the HTTP side hands them on: lower-case names, one value each. */
export function headersOf(headers: Readonly<Record<string, string>>): HeaderMap {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), [String(value)]]))
}
