import { isUuid, type Log } from '@weir/core'
import { Redis } from 'ioredis'
import type { IngestMetrics } from '../metrics.ts'
import type { Acceptance, EdgeCache } from '../ports.ts'

export interface RedisEdgeCache extends EdgeCache {
  close(): Promise<void>
}

/** Accepted edge claims in Redis. Slow, gone or empty: every look-up is a miss, and nothing waits. */
export function createEdgeCache(options: {
  readonly url: string
  readonly prefix: string
  readonly metrics: IngestMetrics
  readonly log: Log
}): RedisEdgeCache {
  const { url, prefix, metrics, log } = options
  const redis = new Redis(url, {
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    commandTimeout: 50,
    connectTimeout: 1_000,
    retryStrategy: times => Math.min(100 * 2 ** times, 5_000),
  })
  let isAway = false
  redis.on('error', (error: Error) => {
    if (!isAway) log.warn({ err: error }, 'Redis is away; the edge asks Postgres for every key')
    isAway = true
  })
  redis.on('ready', () => {
    if (isAway) log.info({}, 'Redis is back')
    isAway = false
  })
  const nameOf = (key: Buffer): string => `${prefix}edge:${key.toString('hex')}`
  return {
    read: async (keys, logId) => {
      try {
        const values = await redis.mget(keys.map(nameOf))
        const found = values.map(value => (value === null ? null : parse(value, logId)))
        const hits = found.filter(acceptance => acceptance !== null).length
        metrics.cacheReads.inc({ result: 'hit' }, hits)
        metrics.cacheReads.inc({ result: 'miss' }, found.length - hits)
        return found
      } catch {
        // A cache that fails is a miss; the row in Postgres decides.
        metrics.cacheErrors.inc({ operation: 'read' })
        return keys.map(() => null)
      }
    },
    write: (key, { deliveryId, digest }, { logId, ttlMs }) => {
      const value = `${logId} ${deliveryId} ${digest.toString('hex')}`
      redis.set(nameOf(key), value, 'PX', ttlMs).catch(() => metrics.cacheErrors.inc({ operation: 'write' }))
    },
    close: () => {
      redis.disconnect()
      return Promise.resolve()
    },
  }
}

/** Anything but a whole entry of this log is a miss: a damaged one must not make an answer. */
function parse(value: string, logId: string): Acceptance | null {
  const [storedLog, deliveryId = '', digest = ''] = value.split(' ')
  if (storedLog !== logId || !isUuid(deliveryId) || !/^[0-9a-f]{64}$/.test(digest)) return null
  return { deliveryId, digest: Buffer.from(digest, 'hex') }
}
