import { randomBytes, randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import type { ClaimRequest, EdgeClaims } from '../../ports.ts'

export interface EdgeClaimsHarness {
  readonly open: (leaseMs: number) => EdgeClaims
  /** Lets this much time pass for the claims. */
  readonly pass: (ms: number) => Promise<void>
}

const logId = randomUUID()
const otherLog = randomUUID()
const longLeaseMs = 60_000

function requestOf(more: Partial<ClaimRequest> = {}): ClaimRequest {
  return { key: randomBytes(32), deliveryId: randomUUID(), digest: randomBytes(32), keepMs: 3_600_000, ...more }
}

/** What every implementation of the edge claims promises. */
export function edgeClaimsContract(harness: EdgeClaimsHarness): void {
  keysAndLeases(harness)
  logsAndTime(harness)
  manyAtOnce(harness)
}

function keysAndLeases(harness: EdgeClaimsHarness): void {
  it('gives a key to the first, and shows it to the next as being published', async () => {
    const claims = harness.open(longLeaseMs)
    const request = requestOf()
    expect(await claims.claim([request], logId)).toEqual([{ kind: 'mine', deliveryId: request.deliveryId }])
    const [second] = await claims.claim([{ ...request, deliveryId: randomUUID() }], logId)
    expect(second).toMatchObject({ kind: 'publishing', deliveryId: request.deliveryId })
    expect(second?.kind === 'publishing' && second.leaseLeftMs > 0 && second.leaseLeftMs <= longLeaseMs).toBe(true)
  })

  it('answers in the order asked, each key for itself', async () => {
    const claims = harness.open(longLeaseMs)
    const requests = Array.from({ length: 50 }, () => requestOf())
    await claims.claim(requests.slice(0, 10), logId)
    await claims.accept(requests.slice(0, 5), logId)
    const kinds = (await claims.claim(requests, logId)).map(answer => answer.kind)
    expect(kinds).toEqual([
      ...Array.from({ length: 5 }, () => 'accepted'),
      ...Array.from({ length: 5 }, () => 'publishing'),
      ...Array.from({ length: 40 }, () => 'mine'),
    ])
  })

  it('names the accepted delivery with its digest, once', async () => {
    const claims = harness.open(longLeaseMs)
    const request = requestOf()
    await claims.claim([request], logId)
    expect(await claims.accept([request], logId)).toEqual([{ kind: 'mine' }])
    const accepted = { kind: 'accepted', deliveryId: request.deliveryId, digest: request.digest }
    expect(await claims.accept([{ ...request, digest: randomBytes(32) }], logId)).toEqual([accepted])
    expect(await claims.claim([requestOf({ key: request.key })], logId)).toEqual([accepted])
  })

  it('hands an expired lease on under its delivery id; of two who publish, one is accepted', async () => {
    const claims = harness.open(100)
    const first = requestOf()
    await claims.claim([first], logId)
    await harness.pass(150)
    const second = requestOf({ key: first.key })
    expect(await claims.claim([second], logId)).toEqual([{ kind: 'mine', deliveryId: first.deliveryId }])
    const late = { ...second, deliveryId: first.deliveryId }
    expect(await claims.accept([late], logId)).toEqual([{ kind: 'mine' }])
    expect(await claims.accept([first], logId)).toEqual([
      { kind: 'accepted', deliveryId: first.deliveryId, digest: second.digest },
    ])
  })

  it('ends a lease that is released, and keeps its delivery id', async () => {
    const claims = harness.open(longLeaseMs)
    const first = requestOf()
    await claims.claim([first], logId)
    await claims.release([{ key: first.key, deliveryId: randomUUID() }])
    expect((await claims.claim([requestOf({ key: first.key })], logId))[0]?.kind).toBe('publishing')
    await claims.release([first])
    expect(await claims.claim([requestOf({ key: first.key })], logId)).toEqual([
      { kind: 'mine', deliveryId: first.deliveryId },
    ])
  })
}

function logsAndTime(harness: EdgeClaimsHarness): void {
  it('counts what another log accepted as absent', async () => {
    const claims = harness.open(longLeaseMs)
    const first = requestOf()
    await claims.claim([first], otherLog)
    await claims.accept([first], otherLog)
    const again = requestOf({ key: first.key })
    expect(await claims.claim([again], logId)).toEqual([{ kind: 'mine', deliveryId: again.deliveryId }])
    expect(await claims.accept([first], logId)).toEqual([{ kind: 'publishing', deliveryId: again.deliveryId }])
    expect(await claims.accept([again], logId)).toEqual([{ kind: 'mine' }])
  })

  it('forgets a key when its time is over, and deletes it a few at a time', async () => {
    const claims = harness.open(10)
    const requests = Array.from({ length: 5 }, () => requestOf({ keepMs: 100 }))
    await claims.claim(requests, logId)
    await claims.accept(requests, logId)
    const kept = requestOf()
    await claims.claim([kept], logId)
    await harness.pass(150)
    const [first] = requests
    if (first === undefined) throw new Error('no request')
    const again = requestOf({ key: first.key, keepMs: 100 })
    expect(await claims.claim([again], logId)).toEqual([{ kind: 'mine', deliveryId: again.deliveryId }])
    expect(await claims.expire(3)).toBe(3)
    expect(await claims.expire(3)).toBe(1)
    expect(await claims.expire(3)).toBe(0)
    expect(await claims.accept(requests.slice(1, 2), logId)).toEqual([{ kind: 'absent' }])
    expect(await claims.accept([kept], logId)).toEqual([{ kind: 'mine' }])
  })
}

function manyAtOnce(harness: EdgeClaimsHarness): void {
  it('gives each key to one of many batches at once, whatever their order', async () => {
    const claims = harness.open(longLeaseMs)
    const keys = Array.from({ length: 40 }, () => randomBytes(32))
    const batches = Array.from({ length: 16 }, (_, i) => {
      const turned = [...keys.slice(i * 2), ...keys.slice(0, i * 2)]
      return (i % 2 === 0 ? turned : turned.toReversed()).map(key => requestOf({ key }))
    })
    const answers = await Promise.all(
      batches.map(async batch => {
        const claimed = await claims.claim(batch, logId)
        const mine = batch.filter((_, i) => claimed[i]?.kind === 'mine')
        const accepted = await claims.accept(mine, logId)
        return accepted.filter(answer => answer.kind === 'mine').length
      }),
    )
    expect(answers.reduce((sum, count) => sum + count, 0)).toBe(keys.length)
  })
}
