import { sha256, type ClientConfiguration } from '@weir/core'
import type { ApiClient } from './client-event.ts'
import { prepareBusinessKey, preparePaths } from './event-draft.ts'
import { singleHeader, type HeaderMap } from './header-map.ts'

/** Finds the client of a request by the SHA-256 of its key: the look-up's time tells nothing about the key. */
export type ClientLookup = (headers: HeaderMap) => ApiClient | null

export function clientLookup(clients: readonly ClientConfiguration[]): ClientLookup {
  const byHash = new Map(
    clients.map(client => [
      client.keySha256.toLowerCase(),
      {
        name: client.name,
        tenant: client.tenant,
        onDuplicate: client.onDuplicate,
        windowSeconds: client.windowSeconds,
        maxBodyBytes: client.maxBodyBytes,
        paths: preparePaths(client.paths),
        businessKey: prepareBusinessKey(client.businessKey),
      },
    ]),
  )
  return headers => {
    const header = singleHeader(headers, 'authorization')
    if (header.kind !== 'one') return null
    const match = /^bearer +([!-~]{1,512})$/i.exec(header.value)
    return match?.[1] === undefined ? null : (byHash.get(sha256(match[1]).toString('hex')) ?? null)
  }
}
