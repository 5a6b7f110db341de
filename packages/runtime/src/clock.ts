import { randomBytes } from 'node:crypto'
import { type Clock, uuidV7 } from '@weir/core'

/** The machine's clock. For log lines, ids and waiting; windows and expiry follow the broker's log-append time instead. */
export const systemClock: Clock = { nowMs: () => Date.now() }

/** A fresh UUIDv7: its first 48 bits are the clock's milliseconds, the rest is random. */
export function newUuidV7(clock: Clock): string {
  return uuidV7(clock.nowMs(), randomBytes(10))
}
