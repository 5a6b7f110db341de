// Wraps kafkajs `src/protocol/recordBatch/v0/decoder.js`. Compaction can leave a batch without its last record, or without any
// (the cleaner keeps it to remember a producer's sequence). kafkajs forgets `lastOffsetDelta`, so the reader's position never
// passes such a batch. A control record at the batch's last offset makes it pass; it is never shown to anybody.

interface DecodedRecord {
  readonly offset: string
}

interface DecodedBatch {
  readonly firstOffset: string
  readonly lastOffsetDelta: number
  readonly maxTimestamp: string
  readonly records: unknown[]
}

export type RecordBatchDecoder = (decoder: unknown) => Promise<DecodedBatch>

export function withLastOffset(decode: RecordBatchDecoder): RecordBatchDecoder {
  return async decoder => {
    const batch = await decode(decoder)
    const lastOffset = Number(batch.firstOffset) + batch.lastOffsetDelta
    const lastRecord = batch.records.at(-1) as DecodedRecord | undefined
    if (lastRecord && Number(lastRecord.offset) >= lastOffset) return batch
    const { records, ...batchContext } = batch
    records.push({
      magicByte: 2,
      attributes: 0,
      timestamp: batch.maxTimestamp,
      offset: String(lastOffset),
      key: null,
      value: null,
      headers: [],
      isControlRecord: true,
      batchContext,
    })
    return batch
  }
}
