// dedup.claim and dedup.restore of migration 000003: one call, one step.
import type { LogPosition, Ownership } from '@weir/core'
import type { OwnerModel } from './owner-model.ts'
import type { ClaimAnswer, ClaimRequest, RestoredClaim } from './ports.ts'
import type { ClaimRow, Tables } from './tables.ts'

export interface ClaimInput {
  readonly partition: number
  readonly logId: string
  readonly ownership: Ownership
  readonly committed: readonly LogPosition[]
  readonly requests: readonly ClaimRequest[]
}

export interface ClaimModel {
  claim(input: ClaimInput): readonly ClaimAnswer[] | null
  restore(ownership: Ownership, claims: readonly RestoredClaim[]): number | null
}

export function createClaimModel(tables: Tables, owners: OwnerModel): ClaimModel {
  return {
    claim: input => {
      if (!owners.own(input.ownership, input.committed)) return null
      for (const request of input.requests) insert(tables, request, input.logId, input.partition)
      for (const request of businessOrder(input.requests)) claimBusiness(tables, request, input)
      return input.requests.map(request => answerOf(tables, request))
    },
    restore: (ownership, claims) => {
      if (!owners.own(ownership, [])) return null
      let missing = 0
      for (const claim of claims) if (insert(tables, claim, claim.logId, ownership.partition)) missing++
      for (const claim of claims) insertBusiness(tables, claim)
      return missing
    },
  }
}

/** `on conflict do nothing`; true when it was inserted. */
function insert(tables: Tables, request: ClaimRequest, logId: string, partition: number): boolean {
  const key = request.eventKey.toString('hex')
  if (tables.claims.has(key)) return false
  const { eventKey, deliveryId, offset, payloadDigest, appendedAtMs } = request
  tables.claims.set(key, { eventKey, deliveryId, logId, partition, offset, payloadDigest, appendedAtMs })
  return true
}

/** As the statement sorts: by business key, then offset. */
function businessOrder(requests: readonly ClaimRequest[]): ClaimRequest[] {
  return requests
    .filter(request => request.businessKey !== null)
    .sort((a, b) => {
      const order =
        a.businessKey !== null && b.businessKey !== null ? Buffer.compare(a.businessKey.key, b.businessKey.key) : 0
      return order || a.offset - b.offset
    })
}

/** Only for a record that won its event key, in this call or an earlier one. */
function claimBusiness(tables: Tables, request: ClaimRequest, { logId, partition }: ClaimInput): void {
  const claim = tables.claims.get(request.eventKey.toString('hex'))
  if (claim === undefined || !isFor(claim, request, logId, partition)) return
  insertBusiness(tables, request)
}

function isFor(claim: ClaimRow, request: ClaimRequest, logId: string, partition: number): boolean {
  return (
    claim.logId === logId &&
    claim.partition === partition &&
    claim.offset === request.offset &&
    claim.deliveryId === request.deliveryId
  )
}

function insertBusiness(tables: Tables, { businessKey, eventKey }: ClaimRequest): void {
  if (businessKey === null) return
  const key = businessKey.key.toString('hex')
  if (!tables.business.has(key)) tables.business.set(key, { ...businessKey, eventKey: eventKey.toString('hex') })
}

function answerOf(tables: Tables, { eventKey, businessKey }: ClaimRequest): ClaimAnswer {
  const claim = tables.claims.get(eventKey.toString('hex'))
  if (claim === undefined) throw new Error('a claim that was inserted or found is gone')
  const business = businessKey === null ? undefined : tables.business.get(businessKey.key.toString('hex'))
  const holder = business === undefined ? undefined : tables.claims.get(business.eventKey)
  return {
    holder: { ...placeOf(claim), payloadDigest: claim.payloadDigest },
    knownEmitted: isKnownEmitted(tables, claim),
    businessHolder: holder === undefined ? null : { ...placeOf(holder), eventKey: holder.eventKey },
  }
}

function placeOf({ deliveryId, logId, partition, offset }: ClaimRow) {
  return { deliveryId, coordinate: { logId, partition, offset } }
}

function isKnownEmitted(tables: Tables, claim: ClaimRow): boolean {
  for (const row of tables.positions.values()) {
    if (row.stage !== 'dedup' || row.logId !== claim.logId || row.partition !== claim.partition) continue
    if (row.emittedBelow > claim.offset) return true
  }
  return false
}
