import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Root of the checkout this command belongs to. */
export const checkout = fileURLToPath(new URL('../../../', import.meta.url)).replace(/\/$/, '')
export const stateRoot = join(checkout, '.weir')

/** Folder of one kind of run: `up`, `demo`, `test`. They do not touch each other. */
export function stateDirOf(kind: string): string {
  return join(stateRoot, kind)
}
