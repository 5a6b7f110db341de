import { WeirError, type Log } from '@weir/core'
import { createMetrics, type Metrics } from '@weir/runtime'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createMemoryReceipts, type MemoryReceipts } from '../adapters/testing/memory-edge.ts'
import { createIngestMetrics } from '../metrics.ts'
import { ReceiptBook, type ReceiptDraft } from './receipts.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function bookOf(log: MemoryReceipts, maxWaiting = 100) {
  const errors: string[] = []
  const logger: Log = {
    debug: () => undefined,
    info: () => undefined,
    warn: () => undefined,
    error: (_fields, message) => void errors.push(message),
    child: () => logger,
  }
  const metrics = createMetrics('ingest')
  const clock = { nowMs: () => Date.now() }
  const book = new ReceiptBook({ log, clock, metrics: createIngestMetrics(metrics), logger, flushMs: 100, maxWaiting })
  return { book, errors, metrics }
}

let ids = 0
function draftOf(more: Partial<ReceiptDraft> = {}): ReceiptDraft {
  return {
    receiptId: `receipt-${ids++}`,
    tenant: 'acme',
    source: 'github',
    eventKey: null,
    eventKeyText: null,
    deliveryId: null,
    originalDeliveryId: null,
    outcome: 'rejected',
    reason: 'bad_signature',
    status: 401,
    sizeBytes: 2,
    credentialId: null,
    run: null,
    traceparent: null,
    ...more,
  }
}

async function droppedOf(metrics: Metrics): Promise<number> {
  const line = (await metrics.text()).split('\n').find(text => text.startsWith('weir_ingest_receipts_dropped_total'))
  return Number(line?.split(' ').at(-1) ?? 0)
}

const sum = (log: MemoryReceipts): number => log.written.reduce((total, receipt) => total + receipt.count, 0)

describe('receipts', () => {
  it('stand for every answer; equal answers of a storm share one', async () => {
    const log = createMemoryReceipts()
    const { book } = bookOf(log)
    for (let i = 0; i < 1_000; i++) book.note(draftOf())
    book.note(draftOf({ eventKey: Buffer.alloc(32, 1), outcome: 'accepted', reason: 'ok', status: 202 }))
    await vi.advanceTimersByTimeAsync(500)
    expect(log.written.map(receipt => receipt.count)).toEqual([1_000, 1])
  })

  it('do not multiply with names that a sender makes up', async () => {
    const log = createMemoryReceipts()
    const { book } = bookOf(log)
    for (let i = 0; i < 1_000; i++) {
      book.note(draftOf({ tenant: null, source: `made-up-${i}`, reason: 'unknown_source', status: 404 }))
    }
    await vi.advanceTimersByTimeAsync(500)
    expect(log.written).toHaveLength(1)
    expect(sum(log)).toBe(1_000)
  })

  it('wait while Kafka is away, lose no count, and block nobody', async () => {
    let isAway = true
    const log = createMemoryReceipts(() =>
      isAway ? Promise.reject(new WeirError('broker_unavailable', 'gone')) : Promise.resolve(),
    )
    const { book, metrics } = bookOf(log)
    for (let i = 0; i < 50; i++) {
      book.note(draftOf({ reason: `reason-${i % 5}` }))
      await vi.advanceTimersByTimeAsync(100)
    }
    expect(log.written).toHaveLength(0)
    isAway = false
    await vi.advanceTimersByTimeAsync(30_000)
    expect([log.written.length, sum(log)]).toEqual([5, 50])
    expect(await droppedOf(metrics)).toBe(0)
  })

  it('count what comes during a write as receipts of their own', async () => {
    const log = createMemoryReceipts(
      async () =>
        await new Promise(resolve => {
          setTimeout(resolve, 500)
        }),
    )
    const { book } = bookOf(log)
    for (let i = 0; i < 20; i++) {
      book.note(draftOf())
      await vi.advanceTimersByTimeAsync(100)
    }
    await vi.advanceTimersByTimeAsync(10_000)
    expect(sum(log)).toBe(20)
  })

  it('are bounded: what is too much is counted, and said once', async () => {
    const log = createMemoryReceipts(() => Promise.reject(new WeirError('broker_unavailable', 'gone')))
    const { book, errors, metrics } = bookOf(log, 10)
    for (let i = 0; i < 25; i++) book.note(draftOf({ reason: `reason-${i}` }))
    expect(await droppedOf(metrics)).toBe(15)
    expect(errors).toEqual(['receipts are dropped'])
  })

  it('that can never be written do not hold up the others', async () => {
    let isFirst = true
    const log = createMemoryReceipts(() => {
      const fails = isFirst
      isFirst = false
      return fails ? Promise.reject(new WeirError('record_too_large', 'large')) : Promise.resolve()
    })
    const { book, metrics } = bookOf(log)
    book.note(draftOf())
    await vi.advanceTimersByTimeAsync(500)
    book.note(draftOf({ reason: 'later' }))
    await vi.advanceTimersByTimeAsync(500)
    expect(log.written.map(receipt => receipt.reason)).toEqual(['later'])
    expect(await droppedOf(metrics)).toBe(1)
  })

  it('are written at the end, within bounds', async () => {
    const log = createMemoryReceipts()
    const { book } = bookOf(log)
    book.note(draftOf())
    await book.close(1_000)
    expect(sum(log)).toBe(1)

    const away = bookOf(createMemoryReceipts(() => Promise.reject(new WeirError('broker_unavailable', 'gone'))))
    away.book.note(draftOf())
    const closed = away.book.close(1_000)
    await vi.advanceTimersByTimeAsync(1_000)
    await closed
    expect(await droppedOf(away.metrics)).toBe(1)
  })
})
