// What one partition remembers of its idempotent producers: the last sequence of each, and its last five batches.

/** How many batches of a producer a broker can tell to be repeats. */
const windowBatches = 5

/** The place of a batch in what one producer sends to one partition. */
export interface BatchSequence {
  readonly producerId: number
  readonly epoch: number
  readonly baseSequence: number
  readonly count: number
}

export type SequenceVerdict =
  | { readonly kind: 'append' }
  /** A repeat of a batch that is in the log: acknowledged, not appended. */
  | { readonly kind: 'known'; readonly baseOffset: number }
  | { readonly kind: 'refused'; readonly code: 'out_of_order_sequence' | 'invalid_producer_epoch' }

interface Producer {
  readonly epoch: number
  readonly lastSequence: number
  readonly batches: readonly { readonly first: number; readonly last: number; readonly baseOffset: number }[]
}

export class Sequences {
  readonly #producers = new Map<number, Producer>()

  /** A higher epoch begins at 0 again; the first batch of an unknown producer may begin anywhere. */
  check({ producerId, epoch, baseSequence, count }: BatchSequence): SequenceVerdict {
    const known = this.#producers.get(producerId)
    if (known === undefined) return { kind: 'append' }
    if (epoch < known.epoch) return { kind: 'refused', code: 'invalid_producer_epoch' }
    if (epoch > known.epoch) return baseSequence === 0 ? { kind: 'append' } : outOfOrder
    const last = baseSequence + count - 1
    const repeat = known.batches.find(batch => batch.first === baseSequence && batch.last === last)
    if (repeat !== undefined) return { kind: 'known', baseOffset: repeat.baseOffset }
    return baseSequence === known.lastSequence + 1 ? { kind: 'append' } : outOfOrder
  }

  remember({ producerId, epoch, baseSequence, count }: BatchSequence, baseOffset: number): void {
    const known = this.#producers.get(producerId)
    const before = known?.epoch === epoch ? known.batches : []
    const last = baseSequence + count - 1
    const batches = [...before, { first: baseSequence, last, baseOffset }].slice(-windowBatches)
    this.#producers.set(producerId, { epoch, lastSequence: last, batches })
  }
}

const outOfOrder: SequenceVerdict = { kind: 'refused', code: 'out_of_order_sequence' }
