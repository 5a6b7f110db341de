import { ceiling } from './ceiling.ts'
import type { Gate } from './gate.ts'
import { loopGuard } from './loop-guard.ts'
import { rate } from './rate.ts'
import { staticRules } from './static-rules.ts'
import { storedDecision } from './stored-decision.ts'
import { version } from './version.ts'
import { waitingBehind } from './waiting-behind.ts'

/**
 * The verdict is that of the first gate that does not let pass. Rates come before ceilings, so that what is lost when both speak is a
 * rate unit, never an exact one.
 */
export const gates: readonly Gate[] = [storedDecision, staticRules, loopGuard, version, waitingBehind, rate, ceiling]
