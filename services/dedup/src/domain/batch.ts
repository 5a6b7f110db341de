import { lengthPrefixed, sha256, type LogRecord } from '@weir/core'
import type { RawEvent } from '@weir/schemas'
import type { BusinessClaim } from '../ports.ts'

/** A record of weir.raw that can be judged. */
export interface Judged {
  readonly record: LogRecord
  readonly event: RawEvent
}

/** Repeats of one key inside a batch that carry the same payload: counted, not multiplied. `last` is the last of them. */
export interface Repeats {
  readonly first: Judged
  readonly last: Judged
  readonly copies: number
  readonly payloadDiffers: boolean
}

export interface Settled {
  /** First record of each key, in offset order. */
  readonly firsts: readonly Judged[]
  readonly repeats: readonly Repeats[]
}

/** Settles repeats inside a batch: the first offset of a key stands for it. Call with records that passed validation. */
export function settleRepeats(judged: readonly Judged[]): Settled {
  const firsts = new Map<string, Judged>()
  const groups = new Map<string, { first: Judged; last: Judged; copies: number; payloadDiffers: boolean }>()
  for (const item of judged) {
    const key = item.event.eventKey.toString('latin1')
    const first = firsts.get(key)
    if (first === undefined) {
      firsts.set(key, item)
      continue
    }
    const digest = item.event.payloadDigest.toString('latin1')
    const group = groups.get(key + digest)
    if (group === undefined) {
      const payloadDiffers = !item.event.payloadDigest.equals(first.event.payloadDigest)
      groups.set(key + digest, { first, last: item, copies: item.event.copies, payloadDiffers })
    } else {
      group.last = item
      group.copies += item.event.copies
    }
  }
  return { firsts: [...firsts.values()], repeats: [...groups.values()] }
}

/** The business key of an event, hashed in the key space of its tenant. */
export function businessClaimOf(event: RawEvent): BusinessClaim | null {
  const { businessKey, tenant } = event
  if (businessKey === null) return null
  const key = sha256(lengthPrefixed([tenant, businessKey.space, businessKey.value]))
  return { key, space: businessKey.space, value: businessKey.value }
}
