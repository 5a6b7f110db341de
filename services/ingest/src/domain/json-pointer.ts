import { WeirError, type Pointer } from '@weir/core'
import { isIndex } from './json-scan.ts'

/** Tokens of an RFC 6901 pointer. Throws `config_invalid`: pointers come from the configuration. */
export function pointerTokens(pointer: Pointer): readonly string[] {
  if (pointer === '') return []
  if (!pointer.startsWith('/') || /~(?![01])/.test(pointer)) {
    throw new WeirError(
      'config_invalid',
      `\`${pointer}\` is not a JSON Pointer: begin with / and write ~ as ~0, / as ~1`,
    )
  }
  return pointer
    .slice(1)
    .split('/')
    .map(token => token.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/** The value at the end of the tokens; `undefined` when there is none. Own properties only. */
export function valueAt(root: unknown, tokens: readonly string[]): unknown {
  let at: unknown = root
  for (const token of tokens) {
    if (Array.isArray(at)) at = isIndex(token) ? at[Number(token)] : undefined
    else if (isRecord(at)) at = Object.hasOwn(at, token) ? at[token] : undefined
    else return undefined
  }
  return at
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
