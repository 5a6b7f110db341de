import type { RawEvent, Receipt } from '@weir/schemas'
import type { AcceptAnswer, ClaimAnswer, EdgeCache, EdgeClaims, EventLog, ReceiptLog } from '../../ports.ts'

interface Row {
  deliveryId: string
  digest: Buffer
  logId: string | null
  leaseUntilMs: number
  keepUntilMs: number
}

/** Edge claims in memory: the second implementation of the port, held to the same contract as Postgres. */
export function createMemoryClaims(options: { readonly nowMs: () => number; readonly leaseMs: number }): EdgeClaims {
  const { nowMs, leaseMs } = options
  const rows = new Map<string, Row>()
  const nameOf = (key: Buffer): string => key.toString('hex')
  const isPresent = (row: Row | undefined, logId: string): row is Row =>
    row !== undefined && row.keepUntilMs > nowMs() && (row.logId === null || row.logId === logId)
  return {
    claim: async (requests, logId) =>
      await Promise.resolve(
        requests.map(({ key, deliveryId, digest, keepMs }): ClaimAnswer => {
          const row = rows.get(nameOf(key))
          if (isPresent(row, logId) && row.logId !== null) {
            return { kind: 'accepted', deliveryId: row.deliveryId, digest: row.digest }
          }
          if (row !== undefined && row.logId === null && row.leaseUntilMs > nowMs()) {
            return { kind: 'publishing', deliveryId: row.deliveryId, leaseLeftMs: row.leaseUntilMs - nowMs() }
          }
          const kept = isPresent(row, logId) ? row : { deliveryId, keepUntilMs: nowMs() + keepMs }
          rows.set(nameOf(key), {
            deliveryId: kept.deliveryId,
            digest,
            logId: null,
            leaseUntilMs: nowMs() + leaseMs,
            keepUntilMs: kept.keepUntilMs,
          })
          return { kind: 'mine', deliveryId: kept.deliveryId }
        }),
      ),
    accept: async (requests, logId) =>
      await Promise.resolve(
        requests.map(({ key, deliveryId, digest }): AcceptAnswer => {
          const row = rows.get(nameOf(key))
          if (row === undefined) return { kind: 'absent' }
          if (row.deliveryId === deliveryId && row.logId !== logId) {
            Object.assign(row, { logId, digest })
            return { kind: 'mine' }
          }
          return row.logId === null
            ? { kind: 'publishing', deliveryId: row.deliveryId }
            : { kind: 'accepted', deliveryId: row.deliveryId, digest: row.digest }
        }),
      ),
    release: async requests => {
      for (const { key, deliveryId } of requests) {
        const row = rows.get(nameOf(key))
        if (row?.deliveryId === deliveryId && row.logId === null) row.leaseUntilMs = nowMs()
      }
      await Promise.resolve()
    },
    expire: async limit => {
      const ended = [...rows].filter(([, row]) => row.keepUntilMs <= nowMs() && row.leaseUntilMs <= nowMs())
      for (const [name] of ended.slice(0, limit)) rows.delete(name)
      return await Promise.resolve(Math.min(limit, ended.length))
    },
  }
}

export interface MemoryLog extends EventLog {
  readonly events: RawEvent[]
}

/** `weir.raw` in memory. `before` runs ahead of each append and may wait, or throw what Kafka would. */
export function createMemoryLog(before: (event: RawEvent) => Promise<void> = () => Promise.resolve()): MemoryLog {
  const events: RawEvent[] = []
  return {
    events,
    logId: () => '00000000-0000-4000-8000-000000000001',
    append: async event => {
      await before(event)
      events.push(event)
    },
  }
}

export interface MemoryReceipts extends ReceiptLog {
  readonly written: Receipt[]
}

export function createMemoryReceipts(before: () => Promise<void> = () => Promise.resolve()): MemoryReceipts {
  const written: Receipt[] = []
  return {
    written,
    append: async receipts => {
      await before()
      written.push(...receipts)
    },
  }
}

/** A cache that never knows anything: what a Redis that is away amounts to. */
export const emptyCache: EdgeCache = {
  read: async keys => await Promise.resolve(keys.map(() => null)),
  write: () => undefined,
}
