/** Request headers: every instance of each lower-case name, each value with its bytes as Latin-1 characters (as HTTP parsers give them). */
export type HeaderMap = Readonly<Record<string, readonly string[] | undefined>>

export type SingleHeader =
  { readonly kind: 'one'; readonly value: string } | { readonly kind: 'absent' } | { readonly kind: 'many' }

/** A header that must stand once: a second instance is never chosen from, since another reader may choose the other one. */
export function singleHeader(headers: HeaderMap, name: string): SingleHeader {
  const values = headers[name.toLowerCase()]
  const value = values?.[0]
  if (values === undefined || value === undefined) return { kind: 'absent' }
  return values.length === 1 ? { kind: 'one', value } : { kind: 'many' }
}

/** The bytes of a header value as they came in. */
export function headerBytes(value: string): Buffer {
  return Buffer.from(value, 'latin1')
}

/** The value as text; `null` when its bytes are not UTF-8. */
export function headerText(value: string): string | null {
  // oxlint-disable-next-line no-control-regex -- asks whether all is ASCII
  if (/^[\u0000-\u007f]*$/.test(value)) return value
  return decodeUtf8(headerBytes(value))
}

const strictUtf8 = new TextDecoder('utf-8', { fatal: true })

/** Text of UTF-8 bytes without a leading byte order mark; `null` when they are not UTF-8 (replacing bad bytes would merge different texts). */
export function decodeUtf8(bytes: Buffer): string | null {
  try {
    return strictUtf8.decode(bytes)
  } catch {
    return null
  }
}
