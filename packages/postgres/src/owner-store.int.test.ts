import type { LogPosition, OwnerStore } from '@weir/core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/support/database.ts'
import { createOwnerStore, openDatabase, positionArrays, type Database } from './index.ts'

let test: TestDatabase
let db: Database
let store: OwnerStore
let nextPartition = 0

beforeAll(async () => {
  test = await createTestDatabase()
  // With the rights of a stage, not of an administrator.
  db = openDatabase({ url: test.urls.dedup, applicationName: 'owner test', maxConnections: 8 })
  store = createOwnerStore(db)
})

afterAll(async () => {
  await db.close()
  await test.drop()
})

const stage = 'dedup'
const freshPartition = (): number => nextPartition++

const at = (topic: string, emittedBelow: number, claimedAtMs = 0): LogPosition => ({
  topic,
  logId: '7d1a8b1e-5f5c-4c0f-9d0b-6a2f3c4e5d60',
  emittedBelow,
  claimedAtMs,
})

describe('owner rows', () => {
  it('begin at epoch 1 without positions and rise with each take-over', async () => {
    const partition = freshPartition()
    const first = await store.takeOver(stage, partition)
    expect(first).toEqual({ ownership: { stage, partition, epoch: 1n }, positions: [] })
    expect((await store.takeOver(stage, partition)).ownership.epoch).toBe(2n)
  })

  it('give the positions that were stored to the next owner', async () => {
    const partition = freshPartition()
    const { ownership } = await store.takeOver(stage, partition)
    const positions = [at('events', 3, 30), at('raw', 2 ** 40, 1_800_000_000_000)]
    expect(await store.advance(ownership, positions)).toBe(true)
    expect((await store.takeOver(stage, partition)).positions).toEqual(positions)
  })

  it('keep the logs of a topic that was made again apart', async () => {
    const partition = freshPartition()
    const { ownership } = await store.takeOver(stage, partition)
    const old = at('raw', 100, 5)
    const remade = { ...at('raw', 1, 9), logId: 'ffffffff-5f5c-4c0f-9d0b-6a2f3c4e5d60' }
    await store.advance(ownership, [old])
    await store.advance(ownership, [remade])
    expect((await store.takeOver(stage, partition)).positions).toEqual([old, remade])
  })

  it('never let a position go back, whatever order and repetition the calls have', async () => {
    const partition = freshPartition()
    const { ownership } = await store.takeOver(stage, partition)
    for (const offset of [5, 3, 9, 9, 1]) {
      expect(await store.advance(ownership, [at('raw', offset, offset * 10), at('raw', offset - 1, 0)])).toBe(true)
    }
    expect((await store.takeOver(stage, partition)).positions).toEqual([at('raw', 9, 90)])
  })

  it('let an old epoch write nothing', async () => {
    const partition = freshPartition()
    const old = await store.takeOver(stage, partition)
    await store.advance(old.ownership, [at('raw', 5)])
    await store.takeOver(stage, partition)
    expect(await store.advance(old.ownership, [at('raw', 50)])).toBe(false)
    expect((await store.takeOver(stage, partition)).positions).toEqual([at('raw', 5)])
  })

  it('let nobody write to a partition that was never taken over', async () => {
    expect(await store.advance({ stage, partition: freshPartition(), epoch: 1n }, [at('raw', 1)])).toBe(false)
  })

  it('give many take-overs at once different epochs', async () => {
    const partition = freshPartition()
    const taken = await Promise.all(Array.from({ length: 16 }, async () => await store.takeOver(stage, partition)))
    const epochs = new Set(taken.map(({ ownership }) => ownership.epoch))
    expect(epochs.size).toBe(16)
    const answers = await Promise.all(
      taken.map(async ({ ownership }) => await store.advance(ownership, [at('raw', 1)])),
    )
    expect(answers.filter(Boolean)).toHaveLength(1)
  })

  it('make a take-over wait for the claim in flight and see what it stored', async () => {
    const partition = freshPartition()
    const { ownership } = await store.takeOver(stage, partition)
    let release = (): void => undefined
    const held = new Promise<void>(resolve => {
      release = resolve
    })
    let claimed = (): void => undefined
    const claiming = new Promise<void>(resolve => {
      claimed = resolve
    })
    const claim = db.transaction(async tx => {
      const params = [stage, partition, ownership.epoch, ...positionArrays([at('raw', 7, 70)])]
      expect(await tx.query('select weir.own($1, $2, $3, $4, $5, $6, $7) as mine', params)).toEqual([{ mine: true }])
      claimed()
      await held
    })
    await claiming
    let isTaken = false
    const taking = store.takeOver(stage, partition).then(taken => {
      isTaken = true
      return taken
    })
    await waitingForLock('take_over')
    expect(isTaken).toBe(false)
    release()
    await claim
    expect((await taking).positions).toEqual([at('raw', 7, 70)])
  })

  it('refuse the claim that waited while another took over', async () => {
    const partition = freshPartition()
    const { ownership } = await store.takeOver(stage, partition)
    const late = await db.transaction(async tx => {
      await tx.query('select * from weir.take_over($1, $2)', [stage, partition])
      const answer = store.advance(ownership, [at('raw', 99)])
      await waitingForLock('weir.own')
      return { answer }
    })
    expect(await late.answer).toBe(false)
    expect((await store.takeOver(stage, partition)).positions).toEqual([])
  })

  it('are out of reach for services that own nothing', async () => {
    const ingest = openDatabase({ url: test.urls.ingest, applicationName: 'test' })
    const refused = { context: { sqlState: '42501' } }
    await expect(createOwnerStore(ingest).takeOver(stage, 0)).rejects.toMatchObject(refused)
    await expect(ingest.query('select * from weir.owner')).rejects.toMatchObject(refused)
    await expect(db.query('delete from weir.owner')).rejects.toMatchObject(refused)
    await ingest.close()
  })
})

/** Resolves when a session of this test waits for a lock in a statement with this text. */
async function waitingForLock(text: string): Promise<void> {
  const endMs = Date.now() + 4_000
  for (;;) {
    const waiting = await db.query(
      `select from pg_stat_activity where usename = current_user and wait_event_type = 'Lock' and position($1 in query) > 0`,
      [text],
    )
    if (waiting.length > 0) return
    if (Date.now() > endMs) throw new Error(`no session waited for a lock in "${text}" within 4 s`)
  }
}
