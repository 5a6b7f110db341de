import { WeirError } from '@weir/core'

/** A quoted identifier, for the few statements that cannot bind a name. Refuses all but `[a-z_][a-z0-9_]*` up to 63 bytes. */
export function identifier(name: string): string {
  if (/^[a-z_][a-z0-9_]{0,62}$/.test(name)) return `"${name}"`
  throw new WeirError('invalid_value', `"${name}" is not a plain SQL identifier ([a-z_][a-z0-9_]*, at most 63 bytes)`)
}

/** `schema.table`, each part quoted and checked. */
export function tableIdentifier(name: string): string {
  return name.split('.').map(identifier).join('.')
}
