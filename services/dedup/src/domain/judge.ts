import type { Coordinate } from '@weir/core'
import type { ClaimAnswer, Holder } from '../ports.ts'
import type { Judged } from './batch.ts'

/** What dedup finds about one record (or about counted repeats of it). */
export type Finding =
  | { readonly kind: 'admitted' }
  | {
      readonly kind: 'duplicate'
      readonly reason: 'event_key' | 'business_key'
      readonly original: Holder
      readonly payloadDiffers: boolean
    }
  | { readonly kind: 'parked'; readonly reason: ParkReason; readonly detail: string; readonly original: Holder | null }

export type ParkReason =
  | 'schema_unknown'
  | 'malformed'
  | 'empty'
  | 'invalid_event'
  | 'outside_window'
  | 'payload_changed'
  | 'doubtful_log'
  | 'record_too_large'

/** The rule of DESIGN: winner = the claim holds my coordinate and my delivery id; let through = the business key's holder is me too. */
export function judge(
  judged: Judged,
  here: Coordinate,
  answer: ClaimAnswer,
  onPayloadChange: 'flag' | 'park',
): Finding {
  const { holder, businessHolder } = answer
  const { event } = judged
  if (isMine(holder, here, event.deliveryId)) {
    if (businessHolder === null || businessHolder.eventKey.equals(event.eventKey)) return { kind: 'admitted' }
    return { kind: 'duplicate', reason: 'business_key', original: businessHolder, payloadDiffers: false }
  }
  if (holder.coordinate.logId !== here.logId && !answer.knownEmitted) return doubtful(holder)
  return duplicateOf(holder, !holder.payloadDigest.equals(event.payloadDigest), onPayloadChange)
}

/** A later copy of a key: a duplicate, or parked where the source asks for it and the payload is another. */
export function duplicateOf(original: Holder, payloadDiffers: boolean, onPayloadChange: 'flag' | 'park'): Finding {
  if (payloadDiffers && onPayloadChange === 'park') {
    const detail = `the key was won by delivery ${original.deliveryId} with another payload`
    return { kind: 'parked', reason: 'payload_changed', detail, original }
  }
  return { kind: 'duplicate', reason: 'event_key', original, payloadDiffers }
}

function isMine(holder: Holder, here: Coordinate, deliveryId: string): boolean {
  const { coordinate } = holder
  return (
    coordinate.logId === here.logId &&
    coordinate.partition === here.partition &&
    coordinate.offset === here.offset &&
    holder.deliveryId === deliveryId
  )
}

/** Claimed in another log, and nobody knows whether it was emitted there: neither dropped nor let through without a person. */
function doubtful(holder: Holder): Finding {
  const { logId, offset } = holder.coordinate
  const detail = `the key was claimed at offset ${offset} of log ${logId}, and it is not known that it was emitted from there`
  return { kind: 'parked', reason: 'doubtful_log', detail, original: holder }
}
