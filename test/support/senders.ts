import { providers } from '@weir/ingest'
import type { TestSystem } from './system.ts'

export interface Answered {
  readonly status: number
  readonly headers: Headers
  readonly body: Readonly<Record<string, unknown>>
}

/** Posts to ingest as an API client. */
export async function postEvent(
  test: TestSystem,
  body: string | Buffer,
  options: { readonly key?: string; readonly contentType?: string } = {},
): Promise<Answered> {
  return await post(`${test.system.instance('ingest').httpUrl}/v1/events`, body, {
    authorization: `Bearer ${options.key ?? test.system.options.secrets.apiKeys['acme-api']}`,
    'content-type': options.contentType ?? 'application/json',
  })
}

/** Posts to the `shop` source, signed as Standard Webhooks say. */
export async function postShop(test: TestSystem, id: string, body: Buffer): Promise<Answered> {
  const secret = test.system.options.secrets.environment['WEIR_SECRET_SHOP'] ?? ''
  const signed = providers['standard-webhooks'].sign({ secret, body, nowMs: Date.now(), id })
  return await post(`${test.system.instance('ingest').httpUrl}/v1/webhooks/shop`, body, {
    'content-type': 'application/json',
    ...signed,
  })
}

async function post(url: string, body: string | Buffer, headers: Readonly<Record<string, string>>): Promise<Answered> {
  const response = await fetch(url, { method: 'POST', body: new Uint8Array(Buffer.from(body)), headers })
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Record<string, unknown>,
  }
}
