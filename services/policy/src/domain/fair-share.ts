/** Bytes a tenant may release per round at least. */
export const quantumBytes = 65_536

interface Costly {
  readonly tenant: string
  readonly eventBytes: number
}

/**
 * Deficit round robin: takes turns between tenants until `limit` deliveries are taken, so that one tenant's backlog does not hold up
 * another's. The order within a tenant stays. `deficits` carries over to the next call.
 */
export function takeFairly<T extends Costly>(due: readonly T[], limit: number, deficits: Map<string, number>): T[] {
  const queues = new Map<string, T[]>()
  for (const item of due) queues.set(item.tenant, [...(queues.get(item.tenant) ?? []), item])
  for (const tenant of deficits.keys()) if (!queues.has(tenant)) deficits.delete(tenant)
  // Whoever got least so far begins.
  const order = [...queues.keys()].sort((a, b) => (deficits.get(b) ?? 0) - (deficits.get(a) ?? 0))
  const taken: T[] = []
  while (taken.length < limit && queues.size > 0) {
    for (const tenant of order) {
      const queue = queues.get(tenant)
      if (queue === undefined) continue
      serve(tenant, queue, { taken, limit, deficits })
      if (queue.length === 0) {
        queues.delete(tenant)
        deficits.delete(tenant)
      }
    }
  }
  return taken
}

function serve<T extends Costly>(
  tenant: string,
  queue: T[],
  state: { readonly taken: T[]; readonly limit: number; readonly deficits: Map<string, number> },
): void {
  let deficit = (state.deficits.get(tenant) ?? 0) + quantumBytes
  for (let next = queue[0]; next !== undefined && state.taken.length < state.limit; next = queue[0]) {
    const cost = Math.max(1, next.eventBytes)
    if (cost > deficit) break
    deficit -= cost
    state.taken.push(next)
    queue.shift()
  }
  state.deficits.set(tenant, deficit)
}
