// Recently seen keys of one partition, in typed arrays: answers repeats without a query. A hint only: emptying it at any moment
// changes nothing about which events are delivered.
import { formatUuid } from '@weir/core'

export interface CachedClaim {
  readonly offset: number
  readonly deliveryId: string
  readonly payloadDigest: Buffer
}

const keyWords = 4
const keyBytes = 16
const uuidBytes = 16
const digestBytes = 32
/** Slots looked at for one key: the cache is set-associative. */
const ways = 8

/**
 * Entries hold 128 bits of the event key (itself a SHA-256: finding another key with the same 128 bits takes 2^128 tries), the
 * winner's offset, delivery id and payload digest: 72 bytes each. All entries are of one log and one partition.
 */
export class KeyCache {
  readonly #sets: number
  readonly #keys: Uint32Array
  readonly #offsets: Float64Array
  readonly #deliveries: Buffer
  readonly #digests: Buffer
  #size = 0

  /** `capacity` is rounded up to a power of two; 0 switches the cache off. */
  constructor(capacity: number) {
    const slots = capacity <= 0 ? 0 : 2 ** Math.ceil(Math.log2(Math.max(ways, capacity)))
    this.#sets = slots / ways
    this.#keys = new Uint32Array(slots * keyWords)
    this.#offsets = new Float64Array(slots).fill(-1)
    this.#deliveries = Buffer.alloc(slots * uuidBytes)
    this.#digests = Buffer.alloc(slots * digestBytes)
  }

  get size(): number {
    return this.#size
  }

  /** The winner of this key, if it is remembered and stands below `offset`: a record at or below the winner goes to Postgres. */
  find(key: Buffer, offset: number): CachedClaim | null {
    const slot = this.#slotOf(key)
    if (slot < 0) return null
    const winner = this.#offsets[slot] ?? -1
    if (winner < 0 || winner >= offset) return null
    const digest = this.#digests.subarray(slot * digestBytes, (slot + 1) * digestBytes)
    return {
      offset: winner,
      deliveryId: formatUuid(this.#deliveries.subarray(slot * uuidBytes, (slot + 1) * uuidBytes)),
      payloadDigest: Buffer.from(digest),
    }
  }

  /** Remembers a winner; an entry that is there is never replaced by an older one. */
  remember(key: Buffer, claim: CachedClaim): void {
    if (this.#sets === 0 || claim.payloadDigest.length !== digestBytes) return
    const known = this.#slotOf(key)
    const slot = known >= 0 ? known : this.#victim(key)
    const before = this.#offsets[slot] ?? -1
    if (known >= 0 && before >= claim.offset) return
    if (before < 0) this.#size += 1
    for (let word = 0; word < keyWords; word++) this.#keys[slot * keyWords + word] = key.readUInt32LE(word * 4)
    this.#offsets[slot] = claim.offset
    this.#deliveries.write(claim.deliveryId.replaceAll('-', ''), slot * uuidBytes, 'hex')
    claim.payloadDigest.copy(this.#digests, slot * digestBytes)
  }

  #slotOf(key: Buffer): number {
    if (this.#sets === 0 || key.length < keyBytes) return -1
    const first = this.#firstSlot(key)
    for (let slot = first; slot < first + ways; slot++) if (this.#holds(slot, key)) return slot
    return -1
  }

  #holds(slot: number, key: Buffer): boolean {
    if ((this.#offsets[slot] ?? -1) < 0) return false
    for (let word = 0; word < keyWords; word++) {
      if (this.#keys[slot * keyWords + word] !== key.readUInt32LE(word * 4)) return false
    }
    return true
  }

  /** A free slot of the key's set, else the one with the oldest winner. */
  #victim(key: Buffer): number {
    const first = this.#firstSlot(key)
    let oldest = first
    for (let slot = first; slot < first + ways; slot++) {
      const offset = this.#offsets[slot] ?? -1
      if (offset < 0) return slot
      if (offset < (this.#offsets[oldest] ?? -1)) oldest = slot
    }
    return oldest
  }

  #firstSlot(key: Buffer): number {
    return (key.readUInt32LE(0) % this.#sets) * ways
  }
}
