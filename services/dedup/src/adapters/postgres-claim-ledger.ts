import { WeirError } from '@weir/core'
import { placeholders, positionArrays, type Database, type SqlValue } from '@weir/postgres'
import type { ClaimAnswer, ClaimLedger, ClaimRequest } from '../ports.ts'

interface ClaimRow {
  readonly mine: boolean
  readonly entry: number
  readonly delivery_id: string | null
  readonly log_id: string
  readonly partition: number
  readonly offset: number
  readonly payload_digest: Buffer
  readonly known_emitted: boolean
  readonly business_event_key: Buffer | null
  readonly business_delivery_id: string
  readonly business_log_id: string
  readonly business_partition: number
  readonly business_offset: number
}

const claimSql = `select * from dedup.claim(${placeholders(18)})`
const restoreSql = `select dedup.restore(${placeholders(14)}) as missing`

/** Claims by `dedup.claim` and `dedup.restore` of migration 000003: one call per batch. */
export function createClaimLedger(db: Database): ClaimLedger {
  return {
    claim: async ({ partition, logId }, { ownership, committed }, requests) => {
      const params: SqlValue[] = [partition, ownership.epoch, ...positionArrays(committed), logId]
      const rows = await db.query<ClaimRow>(
        claimSql,
        [
          ...params,
          requests.map(r => r.offset),
          ...identityArrays(requests),
          requests.map(r => r.payloadDigest),
          requests.map(r => r.appendedAtMs),
          ...businessArrays(requests),
        ],
        { prepareAs: 'dedup_claim' },
      )
      if (rows[0]?.mine === false) return null
      if (rows.length !== requests.length) throw noAnswer(requests.length, rows.length)
      return rows.map(toAnswer)
    },
    restore: async (ownership, claims) => {
      const [row] = await db.query<{ missing: number }>(restoreSql, [
        ownership.partition,
        ownership.epoch,
        ...identityArrays(claims),
        claims.map(c => c.logId),
        claims.map(c => c.offset),
        claims.map(c => c.payloadDigest),
        claims.map(c => c.appendedAtMs),
        ...businessArrays(claims),
      ])
      if (row === undefined) throw noAnswer(1, 0)
      return row.missing < 0 ? null : row.missing
    },
  }
}

function identityArrays(requests: readonly ClaimRequest[]): SqlValue[] {
  return [
    requests.map(r => r.eventKey),
    requests.map(r => r.eventKeyText),
    requests.map(r => r.tenant),
    requests.map(r => r.source),
    requests.map(r => r.deliveryId),
  ]
}

function businessArrays(requests: readonly ClaimRequest[]): SqlValue[] {
  return [
    requests.map(r => r.businessKey?.key ?? null),
    requests.map(r => r.businessKey?.space ?? null),
    requests.map(r => r.businessKey?.value ?? null),
  ]
}

function toAnswer(row: ClaimRow): ClaimAnswer {
  // Inserted or found in this very call: a key without a row is not "absent", it is a broken promise.
  if (row.delivery_id === null) throw noAnswer(1, 0)
  const { log_id: logId, partition, offset } = row
  return {
    holder: {
      deliveryId: row.delivery_id,
      coordinate: { logId, partition, offset },
      payloadDigest: row.payload_digest,
    },
    knownEmitted: row.known_emitted,
    businessHolder:
      row.business_event_key === null
        ? null
        : {
            eventKey: row.business_event_key,
            deliveryId: row.business_delivery_id,
            coordinate: {
              logId: row.business_log_id,
              partition: row.business_partition,
              offset: row.business_offset,
            },
          },
  }
}

function noAnswer(asked: number, got: number): WeirError {
  return new WeirError('internal', `dedup.claim answered ${got} of ${asked} keys; the batch is asked again`)
}
