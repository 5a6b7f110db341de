/** Rules of the adapter that a test can switch off, to show what they prevent. Always all on outside tests. */
export interface AdapterRules {
  /** R1: a producer object is thrown away after any error. */
  readonly discardProducer: boolean
  /** R3: acknowledgements are compared with what was sent. */
  readonly checkAcks: boolean
}

export const allRules: AdapterRules = { discardProducer: true, checkAcks: true }
