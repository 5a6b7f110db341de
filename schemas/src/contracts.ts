import { actionSchema, type Action } from './generated/action.ts'
import { controlSchema, type Control } from './generated/control.ts'
import { decisionSchema, type Decision } from './generated/decision.ts'
import { keyStateSchema, type KeyState } from './generated/key-state.ts'
import { outcomeSchema, type Outcome } from './generated/outcome.ts'
import { rawEventSchema, type RawEvent } from './generated/raw-event.ts'
import { receiptSchema, type Receipt } from './generated/receipt.ts'
import { releaseSchema, type Release } from './generated/release.ts'

/** The TypeScript type of each message contract, by name. */
export interface Contracts {
  RawEvent: RawEvent
  Receipt: Receipt
  KeyState: KeyState
  Decision: Decision
  Release: Release
  Outcome: Outcome
  Action: Action
  Control: Control
}

export type ContractName = keyof Contracts

/** Each contract's Avro schema. The registry subject is `dev.weir.<Name>` (record name strategy). */
export const contracts = {
  RawEvent: rawEventSchema,
  Receipt: receiptSchema,
  KeyState: keyStateSchema,
  Decision: decisionSchema,
  Release: releaseSchema,
  Outcome: outcomeSchema,
  Action: actionSchema,
  Control: controlSchema,
} as const satisfies Record<ContractName, object>
