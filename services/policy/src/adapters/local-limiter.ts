import { advancedTatUs, localShare, slotUs, usedNow, type Cell } from '../domain/gcra.ts'
import type { RateAnswer } from '../domain/gates/gate.ts'
import type { RateRequest } from '../ports.ts'

/** Limits remembered at most; those that are full again are forgotten first. */
const maxScopes = 20_000

/** What an instance lets through by itself while the shared limiter is away: its share of each rate. */
export class LocalLimiter {
  readonly #tats = new Map<string, number>()
  #share = 1

  setShare(share: number): void {
    this.#share = Math.max(share, 0.001)
  }

  ask(requests: readonly RateRequest[], nowMs: number): RateAnswer[] {
    const blocked = new Set<string>()
    return requests.map(request => {
      if (blocked.has(request.group)) return { kind: 'behind' }
      const answer = this.#answer(request, nowMs * 1_000)
      if (answer.kind === 'reserved') blocked.add(request.group)
      return answer
    })
  }

  #answer({ scopes }: RateRequest, nowUs: number): RateAnswer {
    const cells = scopes.map((scope): { scope: typeof scope; cell: Cell } => ({
      scope,
      cell: { ...localShare(scope, this.#share), tatUs: this.#tats.get(scope.scope) ?? 0 },
    }))
    for (const { scope, cell } of cells) this.#remember(scope.scope, advancedTatUs(cell, nowUs), nowUs)
    let worst: (typeof cells)[number] | null = null
    for (const entry of cells) {
      const latest = worst === null ? nowUs : slotUs(worst.cell, nowUs)
      if (slotUs(entry.cell, nowUs) > latest) worst = entry
    }
    if (worst === null) return { kind: 'passed', degraded: true }
    const slotMs = Math.ceil(slotUs(worst.cell, nowUs) / 1_000)
    return { kind: 'reserved', slotMs, scope: worst.scope, used: usedNow(worst.cell, nowUs), degraded: true }
  }

  #remember(scope: string, tatUs: number, nowUs: number): void {
    this.#tats.set(scope, tatUs)
    if (this.#tats.size <= maxScopes) return
    for (const [name, tat] of this.#tats) if (tat <= nowUs) this.#tats.delete(name)
    const oldest = this.#tats.keys().next()
    if (this.#tats.size > maxScopes && oldest.done !== true) this.#tats.delete(oldest.value)
  }
}
