import { jsonDepth } from '@weir/core'
import { decodeUtf8 } from './header-map.ts'
import { valueAt } from './json-pointer.ts'
import { rootSlice, sliceAt, type Slice } from './json-scan.ts'

/** Deepest nesting that is parsed. */
export const maxJsonDepth = 64

export type JsonFault = 'empty' | 'too_deep' | 'not_utf8' | 'not_json'

/** A parsed value beside the bytes it came from. */
export interface JsonView {
  readonly bytes: Buffer
  readonly slice: Slice
  readonly value: unknown
}

export type ParsedBody =
  { readonly kind: 'json'; readonly view: JsonView } | { readonly kind: 'fault'; readonly fault: JsonFault }

/** Parses a body once. Depth is measured on the bytes first: a deep body must not reach a parser. Never throws. */
export function parseJson(bytes: Buffer): ParsedBody {
  if (bytes.length === 0) return { kind: 'fault', fault: 'empty' }
  if (jsonDepth(bytes, maxJsonDepth) > maxJsonDepth) return { kind: 'fault', fault: 'too_deep' }
  const text = decodeUtf8(bytes)
  if (text === null) return { kind: 'fault', fault: 'not_utf8' }
  try {
    const value: unknown = JSON.parse(text)
    return { kind: 'json', view: { bytes, slice: rootSlice(bytes), value } }
  } catch {
    return { kind: 'fault', fault: 'not_json' }
  }
}

export type ScalarText =
  { readonly kind: 'text'; readonly text: string } | { readonly kind: 'absent' } | { readonly kind: 'not_scalar' }

/** A text, number or boolean as text. Numbers that a double cannot hold exactly keep the spelling they were sent with. */
export function scalarAt(view: JsonView, tokens: readonly string[]): ScalarText {
  const value = valueAt(view.value, tokens)
  if (typeof value === 'string') return { kind: 'text', text: value }
  if (typeof value === 'boolean') return { kind: 'text', text: String(value) }
  if (typeof value === 'number') return { kind: 'text', text: numberText(view, tokens, value) }
  return value === undefined || value === null ? { kind: 'absent' } : { kind: 'not_scalar' }
}

function numberText(view: JsonView, tokens: readonly string[], value: number): string {
  if (Number.isSafeInteger(value)) return String(value)
  const slice = sliceAt(view.bytes, view.slice, tokens)
  return slice === null ? String(value) : exactNumber(view.bytes.toString('latin1', slice.start, slice.end))
}

/** ECMAScript's spelling where a double holds the number as written (up to 15 digits do); else the spelling as sent. */
export function exactNumber(source: string): string {
  const digits = source
    .replace(/[eE].*$/, '')
    .replace(/[^0-9]/g, '')
    .replace(/^0+/, '')
  const value = Number(source)
  return digits.length <= 15 && Number.isFinite(value) && (value !== 0 || digits === '') ? String(value) : source
}
