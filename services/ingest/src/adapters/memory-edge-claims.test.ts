import { describe } from 'vitest'
import { edgeClaimsContract } from './testing/edge-claims-contract.ts'
import { createMemoryClaims } from './testing/memory-edge.ts'

describe('edge claims in memory', () => {
  let nowMs = 1_700_000_000_000
  edgeClaimsContract({
    open: leaseMs => createMemoryClaims({ nowMs: () => nowMs, leaseMs }),
    pass: ms => {
      nowMs += ms
      return Promise.resolve()
    },
  })
})
