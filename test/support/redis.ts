import { Redis } from 'ioredis'

/** Empties the Redis database of this URL. */
export async function flushRedis(url: string): Promise<void> {
  const redis = new Redis(url)
  await redis.flushdb()
  redis.disconnect()
}
