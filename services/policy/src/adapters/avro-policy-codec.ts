import type { Codec } from '@weir/kafka'
import type { PolicyCodec } from '../ports.ts'

export function createAvroPolicyCodec(codec: Codec): PolicyCodec {
  return {
    decodeEvent: bytes => codec.decode('RawEvent', bytes),
    decodeRelease: record => codec.decode('Release', record.value),
    decodeDecision: record => codec.decode('Decision', record.value),
    decodeOutcome: record => codec.decode('Outcome', record.value),
    encodeDecision: decision => codec.encode('Decision', decision),
    encodeRelease: release => codec.encode('Release', release),
    encodeOutcome: outcome => codec.encode('Outcome', outcome),
  }
}
