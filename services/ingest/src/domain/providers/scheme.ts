import type { KeyObject } from 'node:crypto'
import type { HmacScheme, KeyRule, Pointer, SourceConfiguration } from '@weir/core'
import type { HeaderMap } from '../header-map.ts'
import type { MacAlgorithm, MacEncoding } from '../mac.ts'

/** Why a delivery does not verify. For logs and metrics; the caller gets one answer for all. */
export type RefusalReason =
  | 'missing_signature'
  | 'repeated_header'
  | 'malformed_signature'
  | 'missing_timestamp'
  | 'malformed_timestamp'
  | 'timestamp_too_old'
  | 'timestamp_too_new'
  | 'missing_id'
  | 'no_usable_secret'
  | 'mismatch'

/** What a scheme reads from the headers: claimed signatures and what stands around the body in the signed bytes. */
export type SignatureReading =
  | { readonly kind: 'refused'; readonly reason: RefusalReason }
  | {
      readonly kind: 'read'
      /** Claimed signatures, still encoded. */
      readonly candidates: readonly string[]
      /** Seconds since 1970 as text; `null` when the scheme signs no time. */
      readonly timestamp: string | null
      readonly before: Buffer
      readonly after: Buffer
    }

/** How one source's deliveries are signed. The MAC itself is taken in one place, `verify`. */
export interface SignatureScheme {
  readonly algorithm: MacAlgorithm
  readonly encoding: MacEncoding
  /** How far the signed time may lie from now, on both sides. */
  readonly toleranceSeconds: number
  readonly read: (headers: HeaderMap) => SignatureReading
}

/** A secret made ready for the MAC. */
export interface PreparedSecret {
  readonly id: string
  readonly key: KeyObject
  /** It no longer verifies from then on, milliseconds since 1970. */
  readonly notAfterMs: number | null
}

/** Where a provider puts what Weir needs to know; a source's own rules come first. */
export interface ProviderIdentity {
  readonly key: KeyRule | null
  /** Names of the header in `key.header` that older senders use. */
  readonly keyHeaderAliases: readonly string[]
  readonly type: { readonly header: string | null; readonly body: Pointer | null }
  /** Appended to a type from a header, after a dot: GitHub's `action`. */
  readonly typeSuffix: Pointer | null
  readonly eventTime: Pointer | null
  /** Whether the id's header is covered by the signature; an id in the body always is. */
  readonly keyHeaderSigned: (source: SourceConfiguration) => boolean
  /** Form field that holds the JSON when the provider is set to send forms. */
  readonly formField: string | null
  /** Whether every body is JSON, whatever its Content-Type says. */
  readonly alwaysJson: boolean
  /** Request headers kept with the event beside the common ones. */
  readonly headers: readonly string[]
}

export interface SignRequest {
  readonly secret: string
  readonly body: Buffer
  /** Time of signing, milliseconds since 1970. */
  readonly nowMs: number
  /** Id of the message where the scheme signs or carries one. */
  readonly id: string
  /** Event type where a header carries it. */
  readonly type?: string
  /** For `hmac`: the source's scheme and headers. */
  readonly hmac?: {
    readonly scheme: HmacScheme
    readonly keyHeader?: string | null
    readonly typeHeader?: string | null
  }
}

/** One provider: how it signs, where it says what. One file each, one line in `table.ts`. */
export interface Provider {
  /** Throws `config_invalid` when the source's settings cannot be safe. */
  readonly scheme: (source: SourceConfiguration) => SignatureScheme
  /** Key bytes of a configured secret; `null` when it is not of the provider's form. */
  readonly secretBytes: (value: string) => Buffer | null
  readonly identity: ProviderIdentity
  /** Headers of a delivery as the provider would send it: for tests and `weir send`. */
  readonly sign: (request: SignRequest) => Readonly<Record<string, string>>
}

export const defaultToleranceSeconds = 300

/** Most signatures one header may hold; more are refused before anything is computed. */
export const maxCandidates = 32

export const noBytes: Buffer = Buffer.alloc(0)

export function refused(reason: RefusalReason): { readonly kind: 'refused'; readonly reason: RefusalReason } {
  return { kind: 'refused', reason }
}
