import { reason } from '../case.ts'
import { pass, type Gate } from './gate.ts'

/** Stops event → agent → event loops, which a cap per run misses. */
export const loopGuard: Gate = {
  name: 'loop_guard',
  judge: ({ case: { item }, rules: { maxHops: limit } }) => {
    const used = item.event.hops
    if (used <= limit) return pass
    const detail = `${used} events lie between this one and its root; ${limit} are allowed`
    return { kind: 'deny', reasons: [reason('loop_guard', 'too_many_hops', detail, { rule: 'max_hops', limit, used })] }
  },
}
