import { createSecretKey } from 'node:crypto'
import { WeirError, type SourceConfiguration } from '@weir/core'
import type { HeaderMap } from '../header-map.ts'
import { decodeMac, macOf, matchesAny } from '../mac.ts'
import type { PreparedSecret, RefusalReason, SignatureScheme } from './scheme.ts'
import { providers } from './table.ts'

/** A source's scheme with its secrets made ready. */
export interface Verifier {
  readonly scheme: SignatureScheme
  readonly secrets: readonly PreparedSecret[]
}

export type Verification =
  | { readonly kind: 'verified'; readonly credentialId: string }
  | { readonly kind: 'refused'; readonly reason: RefusalReason }

/** Throws `config_invalid` for a source without a secret, with an empty or malformed one, or with an unsafe scheme: it must not start. */
export function prepareVerifier(source: SourceConfiguration): Verifier {
  const provider = providers[source.provider]
  const refuse = (why: string): never => {
    throw new WeirError('config_invalid', `Source \`${source.name}\`: ${why}`, { context: { source: source.name } })
  }
  if (source.secrets.length === 0) return refuse('it has no secret; an unverified source is not possible')
  const secrets = source.secrets.map(({ id, value, notAfterMs }) => {
    const bytes = provider.secretBytes(value)
    if (bytes === null || bytes.length === 0 || value.trim() === '') {
      return refuse(`secret \`${id}\` is empty or not of the form ${source.provider} secrets have`)
    }
    return { id, key: createSecretKey(bytes), notAfterMs }
  })
  return { scheme: provider.scheme(source), secrets }
}

/**
 * The one place where a signature is judged. `body` is what was received, before inflating, decoding or parsing. Never throws
 * for input. `nowMs` is the time of receipt: a stored delivery is never judged again.
 */
export function verify(verifier: Verifier, body: Buffer, headers: HeaderMap, nowMs: number): Verification {
  const { scheme } = verifier
  const reading = scheme.read(headers)
  if (reading.kind === 'refused') return reading
  if (reading.timestamp !== null) {
    const fault = timestampFault(reading.timestamp, scheme.toleranceSeconds, nowMs)
    if (fault !== null) return { kind: 'refused', reason: fault }
  }
  const candidates: Buffer[] = []
  for (const text of reading.candidates) {
    const mac = decodeMac(text, scheme.encoding, scheme.algorithm)
    if (mac !== null) candidates.push(mac)
  }
  if (candidates.length === 0) return { kind: 'refused', reason: 'malformed_signature' }

  const signed = [reading.before, body, reading.after]
  let usable = 0
  let credentialId: string | null = null
  for (const secret of verifier.secrets) {
    if (secret.notAfterMs !== null && secret.notAfterMs <= nowMs) continue
    usable++
    const matched = matchesAny(macOf(scheme.algorithm, secret.key, signed), candidates)
    if (matched && credentialId === null) credentialId = secret.id
  }
  if (usable === 0) return { kind: 'refused', reason: 'no_usable_secret' }
  return credentialId === null ? { kind: 'refused', reason: 'mismatch' } : { kind: 'verified', credentialId }
}

function timestampFault(text: string, toleranceSeconds: number, nowMs: number): RefusalReason | null {
  // Digits alone: parseInt takes `1614265330abc`, Number takes `0x10` and ` 12 `.
  if (!/^\d{1,12}$/.test(text)) return 'malformed_timestamp'
  const ageSeconds = Math.floor(nowMs / 1000) - Number(text)
  if (ageSeconds > toleranceSeconds) return 'timestamp_too_old'
  if (ageSeconds < -toleranceSeconds) return 'timestamp_too_new'
  return null
}
