import { pass, type Gate } from './gate.ts'

/** A record that was judged before gets the same answer, whatever rules and clock say now. */
export const storedDecision: Gate = {
  name: 'stored_decision',
  judge: ({ isStored }) => (isStored ? { kind: 'stored' } : pass),
}
