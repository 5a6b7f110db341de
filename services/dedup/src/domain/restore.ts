import { lengthPrefixed, sha256, WeirError } from '@weir/core'
import type { Decision } from '@weir/schemas'
import type { Decoded, RestoredClaim } from '../ports.ts'

/** The claims that emitted decisions tell of: whoever was admitted, and whoever won its event key but lost a business key. */
export function restoredClaims(decisions: readonly Decoded<Decision>[]): RestoredClaim[] {
  return decisions.flatMap(decoded => {
    // Leaving one out would forget its claim for good.
    if (decoded.kind === 'fault')
      throw new WeirError('schema_unknown', `an own decision cannot be read: ${decoded.detail}`)
    if (decoded.value.stage !== 'dedup') return []
    const decision = decoded.value
    const lostBusinessKey = decision.reasons[0]?.code === 'business_key'
    if (decision.verdict !== 'admitted' && !lostBusinessKey) return []
    return [claimOf(decision)]
  })
}

function claimOf(decision: Decision): RestoredClaim {
  const { tenant, businessKey, verdict } = decision
  const held = verdict === 'admitted' ? businessKey : null
  return {
    eventKey: decision.eventKey,
    eventKeyText: decision.eventKeyText,
    tenant,
    source: decision.source,
    deliveryId: decision.deliveryId,
    logId: decision.input.logId,
    offset: decision.input.offset,
    payloadDigest: decision.payloadDigest,
    appendedAtMs: decision.appendedAtMs,
    businessKey:
      held === null
        ? null
        : { key: sha256(lengthPrefixed([tenant, held.space, held.value])), space: held.space, value: held.value },
  }
}
