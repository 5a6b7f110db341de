import { reason } from '../case.ts'
import { pass, type Gate } from './gate.ts'

/** No route, no delivery. */
export const staticRules: Gate = {
  name: 'static_rules',
  judge: ({ case: { agent, attempt } }) => {
    if (agent !== '' || attempt > 0) return pass
    return { kind: 'unrouted', reasons: [reason('route', 'no_route', 'no route takes this source and type')] }
  },
}
