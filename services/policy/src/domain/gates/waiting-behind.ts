import { reason, slotReserved, type Reason } from '../case.ts'
import { pass, type Gate } from './gate.ts'

const behind = reason('waiting_behind', 'behind', 'an earlier delivery of this agent and ordering key waits')

/** Nothing overtakes: asked before rates, so that a delivery that waits anyway takes no rate. */
export const waitingBehind: Gate = {
  name: 'waiting_behind',
  judge: ({ case: { rateReserved }, isBehind, rate }) => {
    if (!isBehind && rate?.kind !== 'behind') return pass
    return { kind: 'defer', notBeforeMs: null, reasons: rateReserved ? [behind, keptSlot] : [behind] }
  },
}

const keptSlot: Reason = reason('rate', slotReserved, 'the rate slot reserved before is kept')
