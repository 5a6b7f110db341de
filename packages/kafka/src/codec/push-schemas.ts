import { WeirError } from '@weir/core'
import { contracts, type ContractName } from '@weir/schemas'
import { Registry, subjectOf } from './registry.ts'

export interface PushedSchema {
  readonly name: ContractName
  readonly subject: string
  /** Null when only checked and not registered. */
  readonly id: number | null
}

/**
 * Registers all contracts, one after another (a deploy step; services only look up). With `check` nothing is registered. Throws
 * `schema_incompatible` naming every contract that a reader of an earlier version could not read, before anything is registered.
 */
export async function pushSchemas(options: {
  readonly registryUrl: string
  readonly check?: boolean
}): Promise<readonly PushedSchema[]> {
  const registry = new Registry(options.registryUrl)
  const names = Object.keys(contracts) as ContractName[]
  const faults: string[] = []
  for (const name of names) {
    for (const reason of await registry.incompatibilities(name)) faults.push(`${subjectOf(name)}: ${reason}`)
  }
  if (faults.length > 0) {
    throw new WeirError('schema_incompatible', `schemas would break readers: ${faults.join('; ')}`, {
      context: { faults },
    })
  }
  const pushed: PushedSchema[] = []
  for (const name of names) {
    const id = options.check ? await registry.idOf(name) : await registry.register(name)
    pushed.push({ name, subject: subjectOf(name), id })
  }
  return pushed
}
