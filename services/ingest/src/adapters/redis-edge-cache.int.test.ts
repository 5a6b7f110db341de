import { randomBytes, randomUUID } from 'node:crypto'
import { createServer } from 'node:net'
import type { Log } from '@weir/core'
import { createMetrics } from '@weir/runtime'
import { Redis } from 'ioredis'
import { afterEach, describe, expect, it } from 'vitest'
import { setting } from '../../../../test/support/setting.ts'
import { createIngestMetrics } from '../metrics.ts'
import { createEdgeCache, type RedisEdgeCache } from './redis-edge-cache.ts'

const quiet: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => quiet,
}
const open: RedisEdgeCache[] = []
afterEach(async () => {
  for (const cache of open.splice(0)) await cache.close()
})

function cacheAt(url: string, prefix = `t${randomBytes(5).toString('hex')}.`): RedisEdgeCache {
  const cache = createEdgeCache({ url, prefix, metrics: createIngestMetrics(createMetrics('ingest')), log: quiet })
  open.push(cache)
  return cache
}

const logId = randomUUID()
const acceptance = { deliveryId: randomUUID(), digest: randomBytes(32) }

describe('the edge cache in Redis', () => {
  it('gives back what was accepted in this log, and nothing of another', async () => {
    const cache = cacheAt(setting('REDIS_URL'))
    const [known, unknown] = [randomBytes(32), randomBytes(32)]
    await expect
      .poll(async () => {
        cache.write(known, acceptance, { logId, ttlMs: 60_000 })
        return await cache.read([unknown, known], logId)
      })
      .toEqual([null, acceptance])
    expect(await cache.read([known], randomUUID())).toEqual([null])
  })

  it('takes a damaged entry for a miss', async () => {
    const prefix = `t${randomBytes(5).toString('hex')}.`
    const cache = cacheAt(setting('REDIS_URL'), prefix)
    const key = randomBytes(32)
    const redis = new Redis(setting('REDIS_URL'))
    await expect
      .poll(async () => {
        cache.write(key, acceptance, { logId, ttlMs: 60_000 })
        return await cache.read([key], logId)
      })
      .toEqual([acceptance])
    for (const value of ['', 'x', `${logId} short`, `${logId} ${acceptance.deliveryId} ${'zz'.repeat(32)}`]) {
      await redis.set(`${prefix}edge:${key.toString('hex')}`, value, 'PX', 60_000)
      expect(await cache.read([key], logId)).toEqual([null])
    }
    redis.disconnect()
  })

  it('misses at once when Redis is not there', async () => {
    const cache = cacheAt('redis://127.0.0.1:1')
    const startedMs = performance.now()
    expect(await cache.read([randomBytes(32)], logId)).toEqual([null])
    cache.write(randomBytes(32), acceptance, { logId, ttlMs: 1_000 })
    expect(performance.now() - startedMs).toBeLessThan(500)
  })

  it('misses soon when Redis takes connections and answers nothing', async () => {
    const silent = createServer(socket => socket.on('error', () => undefined))
    await new Promise<void>(resolve => {
      silent.listen(0, '127.0.0.1', resolve)
    })
    const address = silent.address()
    const cache = cacheAt(`redis://127.0.0.1:${typeof address === 'object' ? (address?.port ?? 0) : 0}`)
    const startedMs = performance.now()
    for (let i = 0; i < 5; i++) expect(await cache.read([randomBytes(32)], logId)).toEqual([null])
    expect(performance.now() - startedMs).toBeLessThan(1_000)
    await cache.close()
    silent.close()
  })
})
