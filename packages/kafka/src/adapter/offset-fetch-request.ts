// OffsetFetch v7 with "require stable": offsets of a transaction that is still being decided are an error (88), not the old
// value (kafkajs ends at v4, which gives the old value).
import type { ProtocolRequest } from '../patches/kafkajs-client.ts'
import { FlexibleReader, FlexibleWriter } from './flexible-protocol.ts'

interface GroupOffset {
  readonly topic: string
  readonly partition: number
  /** -1 when the group has none. */
  readonly offset: number
}

interface GroupOffsets {
  readonly errorCode: number
  readonly offsets: readonly GroupOffset[]
}

export function offsetFetchRequest(
  group: string,
  topics: readonly { readonly topic: string; readonly partitions: readonly number[] }[],
  errorOf: (code: number) => Error,
): ProtocolRequest<GroupOffsets> {
  return {
    request: { apiKey: 9, apiVersion: 7, apiName: 'OffsetFetch', encode: () => Promise.resolve(encode(group, topics)) },
    response: {
      decode: payload => Promise.resolve(decode(payload)),
      parse: decoded =>
        decoded.errorCode === 0 ? Promise.resolve(decoded) : Promise.reject(errorOf(decoded.errorCode)),
    },
  }
}

function encode(group: string, topics: readonly { readonly topic: string; readonly partitions: readonly number[] }[]) {
  const writer = new FlexibleWriter().noTags().string(group)
  writer.array(topics, ({ topic, partitions }) => {
    writer.string(topic)
    writer.array(partitions, partition => writer.int32(partition))
    writer.noTags()
  })
  const requireStable = true
  return writer.boolean(requireStable).noTags().finish()
}

function decode(payload: Buffer): GroupOffsets {
  const reader = new FlexibleReader(payload)
  reader.skipTags()
  reader.int32() // throttle time
  const offsets: GroupOffset[] = []
  let partitionError = 0
  reader.array(() => {
    const topic = reader.string() ?? ''
    reader.array(() => {
      const partition = reader.int32()
      const offset = reader.int64()
      reader.int32() // leader epoch
      reader.string() // metadata
      const errorCode = reader.int16()
      reader.skipTags()
      if (errorCode !== 0) partitionError = errorCode
      else offsets.push({ topic, partition, offset })
    })
    reader.skipTags()
  })
  const errorCode = reader.int16()
  return { errorCode: errorCode === 0 ? partitionError : errorCode, offsets }
}
