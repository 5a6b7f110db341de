// services/policy/src/adapters/gcra.lua: rates of a batch, all-or-nothing across scopes, in one step.
import type { RateAnswer, RateRequest } from './ports.ts'

const minMarkerMs = 600_000

export class Gcra {
  #tats = new Map<string, number>()
  #markers = new Map<string, { readonly answer: RateAnswer; readonly untilUs: number }>()

  /** Everything it held is gone. */
  forget(): void {
    this.#tats = new Map()
    this.#markers = new Map()
  }

  ask(requests: readonly RateRequest[], nowMs: number, degraded = false): RateAnswer[] {
    const nowUs = nowMs * 1_000
    const blocked = new Set<string>()
    return requests.map(request => {
      if (blocked.has(request.group)) return { kind: 'behind' }
      const known = this.#markers.get(request.id)
      const answer =
        known !== undefined && known.untilUs > nowUs ? known.answer : this.#answer(request, nowUs, degraded)
      if (answer.kind === 'reserved') blocked.add(request.group)
      return answer
    })
  }

  #answer({ id, scopes }: RateRequest, nowUs: number, degraded: boolean): RateAnswer {
    let latest = nowUs
    let answer: RateAnswer = { kind: 'passed', degraded }
    for (const scope of scopes) {
      const tat = Math.max(this.#tats.get(scope.scope) ?? 0, nowUs)
      const free = tat - (scope.burst - 1) * scope.intervalUs
      if (free > latest) {
        latest = free
        const used = Math.ceil((tat - nowUs) / scope.intervalUs)
        answer = { kind: 'reserved', slotMs: Math.ceil(free / 1_000), scope, used, degraded }
      }
      this.#tats.set(scope.scope, tat + scope.intervalUs)
    }
    const keptMs = Math.max(minMarkerMs, ...scopes.map(scope => scope.periodSeconds * 2_000))
    this.#markers.set(id, { answer, untilUs: nowUs + keptMs * 1_000 + (latest - nowUs) })
    return answer
  }
}
