export { actionSchema, type Action } from './generated/action.ts'
export { controlSchema, type Control } from './generated/control.ts'
export {
  decisionSchema,
  type Decision,
  type DecisionCharge,
  type DecisionCoordinate,
  type DecisionDeliveryTerms,
  type DecisionReason,
} from './generated/decision.ts'
export { keyStateSchema, type KeyState } from './generated/key-state.ts'
export { outcomeSchema, type Outcome } from './generated/outcome.ts'
export { rawEventSchema, type RawEvent, type RawEventBusinessKey, type RawEventHeader } from './generated/raw-event.ts'
export { receiptSchema, type Receipt } from './generated/receipt.ts'
export { releaseSchema, type Release } from './generated/release.ts'
export { flowFieldsOf, unreadFlowFields, type FlowFields } from './flow-fields.ts'
export { contracts, type ContractName, type Contracts } from './contracts.ts'
