import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as passMs } from 'node:timers/promises'
import { openDatabase, type Database } from '@weir/postgres'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../../test/support/database.ts'
import { createEdgeClaims } from './postgres-edge-claims.ts'
import { edgeClaimsContract } from './testing/edge-claims-contract.ts'

let test: TestDatabase
let db: Database

beforeAll(async () => {
  test = await createTestDatabase()
  db = openDatabase({ url: test.urls.ingest, applicationName: 'ingest-test', maxConnections: 8 })
})

afterAll(async () => {
  await db.close()
  await test.drop()
})

describe('edge claims in Postgres, with the rights of ingest', () => {
  edgeClaimsContract({
    open: leaseMs => createEdgeClaims(db, leaseMs),
    // Leases follow the server's clock, so its time has to pass.
    pass: async ms => await passMs(ms),
  })

  it('change a row from publishing to accepted without touching an index', async () => {
    const own = openDatabase({ url: test.urls.ingest, applicationName: 'ingest-test', maxConnections: 1 })
    const claims = createEdgeClaims(own, 60_000)
    const requests = Array.from({ length: 200 }, () => ({
      key: randomBytes(32),
      deliveryId: randomUUID(),
      digest: randomBytes(32),
      keepMs: 3_600_000,
    }))
    const logId = randomUUID()
    await claims.claim(requests, logId)
    await claims.accept(requests, logId)
    // The end of a session hands its statistics in.
    await own.close()
    const admin = openDatabase({ url: test.adminUrl, applicationName: 'ingest-test', maxConnections: 1 })
    const ratio = async (): Promise<{ all: number; hot: number }> => {
      const [row] = await admin.query<{ all: number; hot: number }>(
        `select n_tup_upd::int as all, n_tup_hot_upd::int as hot from pg_stat_user_tables where relname = 'claim' and schemaname = 'edge'`,
      )
      return row ?? { all: 0, hot: 0 }
    }
    try {
      await expect.poll(ratio, { timeout: 20_000 }).toSatisfy(({ all, hot }) => all >= 200 && hot >= all * 0.8)
    } finally {
      await admin.close()
    }
  })

  it('cannot be read by other services', async () => {
    const dedup = openDatabase({ url: test.urls.dedup, applicationName: 'ingest-test', maxConnections: 1 })
    await expect(dedup.query('select from edge.claim')).rejects.toMatchObject({ context: { sqlState: '42501' } })
    await dedup.close()
  })
})
