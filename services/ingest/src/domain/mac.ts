import { createHmac, timingSafeEqual, type KeyObject } from 'node:crypto'

export type MacAlgorithm = 'sha256' | 'sha512'
export type MacEncoding = 'hex' | 'base64'

const macBytes = { sha256: 32, sha512: 64 } as const

/** Decodes a claimed signature. Strict: Node's own decoders skip what they do not know, so that other texts would pass. */
export function decodeMac(text: string, encoding: MacEncoding, algorithm: MacAlgorithm): Buffer | null {
  const length = macBytes[algorithm]
  if (encoding === 'hex') {
    return text.length === length * 2 && /^[0-9a-fA-F]+$/.test(text) ? Buffer.from(text, 'hex') : null
  }
  const bytes = decodeBase64(text)
  return bytes !== null && bytes.length === length ? bytes : null
}

/** Padded standard base64 in its one canonical form; else `null`. */
export function decodeBase64(text: string): Buffer | null {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return null
  const bytes = Buffer.from(text, 'base64')
  return bytes.toString('base64') === text ? bytes : null
}

/** MAC over the given bytes, in order, without joining them. */
export function macOf(algorithm: MacAlgorithm, key: KeyObject, parts: readonly Buffer[]): Buffer {
  const hmac = createHmac(algorithm, key)
  for (const part of parts) hmac.update(part)
  return hmac.digest()
}

/** Whether any candidate equals the MAC. Looks at all of them, so that the time does not tell which matched. */
export function matchesAny(mac: Buffer, candidates: readonly Buffer[]): boolean {
  let found = false
  for (const candidate of candidates) {
    const equal = candidate.length === mac.length && timingSafeEqual(candidate, mac)
    found = equal || found
  }
  return found
}
