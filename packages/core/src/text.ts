/** Why a text from outside may not be stored or used as a key; `null` when it may. */
export type TextFault = 'empty' | 'too_long' | 'nul' | 'control' | 'ill_formed'

/** Checks a text that comes from outside before it is used in a key or a statement. Lone surrogates would collide as UTF-8. */
export function textFault(text: string, maxBytes: number): TextFault | null {
  if (text === '') return 'empty'
  if (text.length > maxBytes || Buffer.byteLength(text, 'utf8') > maxBytes) return 'too_long'
  if (text.includes('\u0000')) return 'nul'
  // oxlint-disable-next-line no-control-regex -- control characters are what is looked for
  if (/[\u0001-\u001f\u007f]/.test(text)) return 'control'
  if (!text.isWellFormed()) return 'ill_formed'
  return null
}

export const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

export function isUuid(text: string): boolean {
  return uuidPattern.test(text)
}

/** Deepest nesting of arrays and objects in JSON bytes, without parsing: a 100,000-deep body must not reach a parser. */
export function jsonDepth(bytes: Buffer, limit: number): number {
  let depth = 0
  let deepest = 0
  let inString = false
  for (let i = 0; i < bytes.length; i++) {
    const c = bytes[i]
    if (inString) {
      if (c === 0x5c) i++
      else if (c === 0x22) inString = false
    } else if (c === 0x22) inString = true
    else if (c === 0x7b || c === 0x5b) {
      depth++
      if (depth > deepest) deepest = depth
      if (deepest > limit) return deepest
    } else if (c === 0x7d || c === 0x5d) depth--
  }
  return deepest
}
