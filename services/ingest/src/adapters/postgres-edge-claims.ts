import { WeirError } from '@weir/core'
import type { Database } from '@weir/postgres'
import type { AcceptAnswer, ClaimAnswer, EdgeClaims } from '../ports.ts'

interface ClaimRow {
  readonly key_hash: Buffer
  readonly outcome: 'mine' | 'accepted' | 'publishing'
  readonly delivery_id: string
  readonly digest: Buffer
  readonly lease_left_ms: number
}

interface AcceptRow {
  readonly key_hash: Buffer
  readonly outcome: 'mine' | 'accepted' | 'publishing' | 'absent'
  readonly delivery_id: string
  readonly digest: Buffer
}

/** The functions of migration 000002: one call per micro-batch. */
export function createEdgeClaims(db: Database, leaseMs: number): EdgeClaims {
  return {
    claim: async (requests, logId) => {
      const rows = await db.query<ClaimRow>(
        'select * from edge.claim($1, $2, $3, $4, $5, $6)',
        [
          requests.map(r => r.key),
          requests.map(r => r.deliveryId),
          requests.map(r => r.digest),
          requests.map(r => r.keepMs),
          logId,
          leaseMs,
        ],
        { prepareAs: 'edge_claim' },
      )
      return inOrder(requests, rows).map(toClaimAnswer)
    },
    accept: async (requests, logId) => {
      const rows = await db.query<AcceptRow>(
        'select * from edge.accept($1, $2, $3, $4)',
        [requests.map(r => r.key), requests.map(r => r.deliveryId), requests.map(r => r.digest), logId],
        { prepareAs: 'edge_accept' },
      )
      return inOrder(requests, rows).map(toAcceptAnswer)
    },
    release: async requests => {
      await db.query('select edge.release($1, $2)', [requests.map(r => r.key), requests.map(r => r.deliveryId)])
    },
    expire: async limit => {
      const [row] = await db.query<{ deleted: number }>('select edge.expire($1) as deleted', [limit])
      return row?.deleted ?? 0
    },
  }
}

function inOrder<Row extends { readonly key_hash: Buffer }>(
  requests: readonly { readonly key: Buffer }[],
  rows: readonly Row[],
): Row[] {
  const byKey = new Map(rows.map(row => [row.key_hash.toString('latin1'), row]))
  return requests.map(({ key }) => {
    const row = byKey.get(key.toString('latin1'))
    // The functions answer every key they are asked about; absence is never an answer.
    if (row === undefined) throw new WeirError('internal', 'the edge claims left a key unanswered')
    return row
  })
}

function toClaimAnswer(row: ClaimRow): ClaimAnswer {
  switch (row.outcome) {
    case 'mine':
      return { kind: 'mine', deliveryId: row.delivery_id }
    case 'accepted':
      return { kind: 'accepted', deliveryId: row.delivery_id, digest: row.digest }
    case 'publishing':
      return { kind: 'publishing', deliveryId: row.delivery_id, leaseLeftMs: row.lease_left_ms }
  }
}

function toAcceptAnswer(row: AcceptRow): AcceptAnswer {
  switch (row.outcome) {
    case 'mine':
    case 'absent':
      return { kind: row.outcome }
    case 'accepted':
      return { kind: 'accepted', deliveryId: row.delivery_id, digest: row.digest }
    case 'publishing':
      return { kind: 'publishing', deliveryId: row.delivery_id }
  }
}
