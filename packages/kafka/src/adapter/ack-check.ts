// R3: kafkajs can resolve a send without having sent every partition (its retry skips a broker that already answered), and the
// broker acknowledges what it takes for a repeat without storing it. Both show in the answer.
import type { RecordMetadata } from 'kafkajs'
import { sliceKey, type Slice } from './send-plan.ts'

export interface CheckedAcks {
  /** First offset of each acknowledged slice, by `topic/partition`. */
  readonly baseOffsets: ReadonlyMap<string, number>
  /** What is wrong with the others, one sentence each. */
  readonly faults: readonly string[]
}

/** Follows the offsets acknowledged to one producer object. */
export class AckCheck {
  readonly #nextOffsets = new Map<string, number>()

  check(request: readonly Slice[], answer: readonly RecordMetadata[]): CheckedAcks {
    const answered = new Map<string, number>()
    for (const { topicName, partition, errorCode, baseOffset } of answer) {
      if (errorCode === 0) answered.set(sliceKey({ topic: topicName, partition }), Number(baseOffset))
    }
    const baseOffsets = new Map<string, number>()
    const faults: string[] = []
    for (const slice of request) {
      const key = sliceKey(slice)
      const base = answered.get(key)
      const lowest = this.#nextOffsets.get(key) ?? 0
      if (base === undefined) faults.push(`${key} was not acknowledged`)
      else if (!(base >= lowest)) faults.push(`${key} was acknowledged at ${base}, below ${lowest}: taken for a repeat`)
      else {
        baseOffsets.set(key, base)
        this.#nextOffsets.set(key, base + slice.records.length)
      }
    }
    return { baseOffsets, faults }
  }
}
