// Who owns which partition number. Pure: the leader of the group computes it from what the members sent.
export interface MemberClaim {
  readonly memberId: string
  /** Numbers owned so far, and the generation they were given in. */
  readonly numbers: readonly number[]
  readonly generation: number
}

/**
 * Spreads the numbers evenly, with as few changes of owner as an even spread allows. A number claimed twice (a member that was
 * thought dead) belongs to the later generation.
 */
export function assignNumbers(count: number, members: readonly MemberClaim[]): Map<string, number[]> {
  const owners = currentOwners(count, members)
  const kept = new Map(members.map(({ memberId }): [string, number[]] => [memberId, []]))
  for (const [number, memberId] of owners) kept.get(memberId)?.push(number)
  const ids = [...kept.keys()].toSorted()
  // Whoever holds most keeps the odd number out.
  const byHeld = ids.toSorted((a, b) => (kept.get(b)?.length ?? 0) - (kept.get(a)?.length ?? 0))
  const share = Math.floor(count / ids.length)
  const larger = count % ids.length
  const quotas = new Map(byHeld.map((id, i) => [id, i < larger ? share + 1 : share]))
  for (const [id, numbers] of kept) numbers.splice(quotas.get(id) ?? 0)
  const taken = new Set([...kept.values()].flat())
  const free = Array.from({ length: count }, (_, number) => number).filter(number => !taken.has(number))
  for (const id of ids) {
    const numbers = kept.get(id) ?? []
    while (numbers.length < (quotas.get(id) ?? 0)) {
      const number = free.shift()
      if (number === undefined) break
      numbers.push(number)
    }
    numbers.sort((a, b) => a - b)
  }
  return kept
}

/** Number to member, numbers ascending. */
function currentOwners(count: number, members: readonly MemberClaim[]): Map<number, string> {
  const byAge = members.toSorted((a, b) => a.generation - b.generation || (a.memberId < b.memberId ? 1 : -1))
  const owners = new Map<number, string>()
  for (const { memberId, numbers } of byAge) for (const number of numbers) owners.set(number, memberId)
  return new Map([...owners].filter(([number]) => number >= 0 && number < count).toSorted(([a], [b]) => a - b))
}
