import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createMicroBatcher } from './micro-batcher.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const limits = { lingerMs: 2, maxBatch: 10, maxQueued: 30, maxRunning: 2 }

describe('the micro-batcher', () => {
  it('turns calls of a few milliseconds into one, and gives each its own answer', async () => {
    const sizes: number[] = []
    const batcher = createMicroBatcher<number, number>({
      ...limits,
      run: async items => {
        sizes.push(items.length)
        return await Promise.resolve(items.map(item => item * 2))
      },
    })
    const answers = Promise.all(Array.from({ length: 7 }, async (_, i) => await batcher.submit(i)))
    await vi.advanceTimersByTimeAsync(5)
    expect(await answers).toEqual([0, 2, 4, 6, 8, 10, 12])
    expect(sizes).toEqual([7])
  })

  it('runs at most so many batches of at most such a size, and answers all', async () => {
    let running = 0
    let most = 0
    const batcher = createMicroBatcher<number, number>({
      ...limits,
      run: async items => {
        most = Math.max(most, ++running)
        expect(items.length).toBeLessThanOrEqual(10)
        await new Promise(resolve => {
          setTimeout(resolve, 20)
        })
        running--
        return items
      },
    })
    const answers = Promise.all(Array.from({ length: 30 }, async (_, i) => await batcher.submit(i)))
    await vi.advanceTimersByTimeAsync(1_000)
    expect(await answers).toHaveLength(30)
    expect(most).toBe(2)
  })

  it('refuses what is too much, and takes more when there is room again', async () => {
    const batcher = createMicroBatcher<number, number>({ ...limits, run: async items => await Promise.resolve(items) })
    const first = Promise.allSettled(Array.from({ length: 31 }, async (_, i) => await batcher.submit(i)))
    await vi.advanceTimersByTimeAsync(100)
    expect((await first).filter(result => result.status === 'rejected')).toHaveLength(1)
    const later = batcher.submit(1)
    await vi.advanceTimersByTimeAsync(100)
    expect(await later).toBe(1)
  })

  it('gives the error of a batch to each of its calls, and goes on', async () => {
    let fails = true
    const batcher = createMicroBatcher<number, number>({
      ...limits,
      run: async items => {
        if (fails) throw new Error('away')
        return await Promise.resolve(items)
      },
    })
    const failed = Promise.allSettled([batcher.submit(1), batcher.submit(2)])
    await vi.advanceTimersByTimeAsync(10)
    expect((await failed).map(result => result.status)).toEqual(['rejected', 'rejected'])
    fails = false
    const later = batcher.submit(3)
    await vi.advanceTimersByTimeAsync(10)
    expect(await later).toBe(3)
  })

  it('does not pass a missing answer off as one', async () => {
    const batcher = createMicroBatcher<number, number>({ ...limits, run: async () => await Promise.resolve([]) })
    const failed = Promise.allSettled([batcher.submit(1)])
    await vi.advanceTimersByTimeAsync(10)
    expect(await failed).toMatchObject([{ status: 'rejected', reason: { code: 'internal' } }])
  })
})
