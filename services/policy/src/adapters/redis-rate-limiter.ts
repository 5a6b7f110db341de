import { readFileSync } from 'node:fs'
import type { Log } from '@weir/core'
import { Redis } from 'ioredis'
import type { RateAnswer } from '../domain/gates/gate.ts'
import type { PolicyMetrics } from '../metrics.ts'
import type { RateLimiter, RateRequest } from '../ports.ts'
import { LocalLimiter } from './local-limiter.ts'

const script = readFileSync(new URL('./gcra.lua', import.meta.url), 'utf8')
/** Longest a batch waits for Redis, milliseconds. */
const defaultCommandTimeoutMs = 50
/** A marker is kept at least this long, milliseconds. */
const minMarkerMs = 600_000

export interface RedisRateLimiterOptions {
  readonly redisUrl: string
  /** Begins every key: keeps installations on one Redis apart. */
  readonly keyPrefix: string
  readonly log: Log
  readonly metrics: PolicyMetrics
  /** How long an answer may take before Redis counts as away, milliseconds. Default 50. */
  readonly commandTimeoutMs?: number
}

/** GCRA in one script per batch. While Redis is away or slow, this instance's share of each rate; logged when that changes. */
export class RedisRateLimiter implements RateLimiter {
  readonly #options: RedisRateLimiterOptions
  readonly #redis: Redis
  readonly #local = new LocalLimiter()
  #isDegraded = false
  #lastError: unknown = null

  constructor(options: RedisRateLimiterOptions) {
    this.#options = options
    this.#redis = new Redis(options.redisUrl, {
      // A resent script could run twice; the marker makes that harmless, but late answers are of no use.
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 1,
      enableOfflineQueue: false,
      commandTimeout: options.commandTimeoutMs ?? defaultCommandTimeoutMs,
      connectTimeout: 2_000,
      retryStrategy: attempts => Math.min(100 * attempts, 2_000),
    })
    // Without a listener a lost connection would end the process; the next batch reports it.
    this.#redis.on('error', error => {
      this.#lastError = error
    })
  }

  /** Resolves when Redis answers or after `timeoutMs`: it is quicker to wait for the connection than to begin degraded. */
  async warmUp(timeoutMs = 2_000): Promise<void> {
    if (this.#redis.status === 'ready') return
    await new Promise<void>(resolve => {
      const done = (): void => {
        clearTimeout(timer)
        this.#redis.off('ready', done)
        resolve()
      }
      const timer = setTimeout(done, timeoutMs)
      this.#redis.once('ready', done)
    })
  }

  setShare(share: number): void {
    this.#local.setShare(share)
  }

  async ask(requests: readonly RateRequest[], nowMs: number): Promise<readonly RateAnswer[]> {
    const started = performance.now()
    try {
      const { keys, args } = commandOf(requests, this.#options.keyPrefix)
      const reply = await this.#redis.eval(script, keys.length, ...keys, ...args)
      const answers = answersOf(requests, reply)
      this.#noteState(false, null)
      this.#options.metrics.limiterAnswered((performance.now() - started) / 1_000)
      return answers
    } catch (error) {
      this.#noteState(true, error)
      return this.#local.ask(requests, nowMs)
    }
  }

  async close(): Promise<void> {
    this.#redis.disconnect()
    await Promise.resolve()
  }

  #noteState(isDegraded: boolean, error: unknown): void {
    if (isDegraded === this.#isDegraded) return
    this.#isDegraded = isDegraded
    this.#options.metrics.limiterDegraded(isDegraded)
    const { log } = this.#options
    if (!isDegraded) log.info({}, 'the rate limiter answers again')
    else log.warn({ err: error, cause: this.#lastError }, 'the rate limiter does not answer: local share of each rate')
  }
}

function commandOf(requests: readonly RateRequest[], prefix: string): { keys: string[]; args: (string | number)[] } {
  const keys: string[] = []
  const args: (string | number)[] = [requests.length]
  const groups = new Map<string, number>()
  for (const { id, tenant, group, scopes } of requests) {
    const number = groups.get(group) ?? groups.size + 1
    groups.set(group, number)
    const longestMs = Math.max(...scopes.map(scope => scope.periodSeconds * 2_000))
    keys.push(`${prefix}{${tenant}}:ch:${id}`, ...scopes.map(scope => `${prefix}{${tenant}}:rl:${scope.scope}`))
    args.push(number, Math.max(longestMs, minMarkerMs), scopes.length)
    for (const scope of scopes) args.push(scope.intervalUs, scope.burst)
  }
  return { keys, args }
}

function answersOf(requests: readonly RateRequest[], reply: unknown): RateAnswer[] {
  if (!Array.isArray(reply) || reply.length !== requests.length * 3)
    throw new Error('the rate script gave no usable answer')
  const numbers = reply.map(Number)
  return requests.map(({ scopes }, i) => {
    const [slotMs = 0, place = 0, used = 0] = numbers.slice(i * 3, i * 3 + 3)
    if (slotMs === -1) return { kind: 'behind' }
    const scope = scopes[place - 1]
    if (slotMs === 0 || scope === undefined) return { kind: 'passed', degraded: false }
    return { kind: 'reserved', slotMs, scope, used, degraded: false }
  })
}
