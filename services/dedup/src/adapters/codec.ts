import type { Codec } from '@weir/kafka'
import type { DedupCodec } from '../ports.ts'

/** The contracts dedup reads and writes, through the registry codec. */
export function createDedupCodec(codec: Codec): DedupCodec {
  return {
    decodeRaw: record => codec.decode('RawEvent', record.value),
    decodeDecision: record => codec.decode('Decision', record.value),
    encodeDecision: decision => codec.encode('Decision', decision),
    encodeState: state => codec.encode('KeyState', state),
  }
}
