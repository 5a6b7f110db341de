// Replaces kafkajs `src/protocol/requests/fetch/v4/decodeMessages.js`, which spreads all records of a batch as arguments of one
// call: a batch of more than about 100,000 tiny records overflows the stack, and the partition stops for good.

interface Decoder {
  readInt32(): number
  readBytes(length: number): Buffer
  canReadBytes(length: number): boolean
}

interface FetchedMessagesModules {
  readonly createDecoder: (buffer: Buffer) => Decoder
  readonly decodeRecordBatch: (decoder: Decoder) => Promise<{ readonly records: readonly unknown[] }>
}

/** From the start of a batch: first offset 8, length 4, leader epoch 4, then the magic byte. */
const magicOffset = 16
const recordBatchOverheadBytes = 49

export function createDecodeMessages(modules: FetchedMessagesModules) {
  return async (decoder: Decoder): Promise<unknown[]> => {
    const sizeBytes = decoder.readInt32()
    if (sizeBytes <= 0 || !decoder.canReadBytes(sizeBytes)) return []
    const bytes = decoder.readBytes(sizeBytes)
    if (bytes.length <= magicOffset) return []
    if (bytes.readInt8(magicOffset) !== 2) {
      throw new Error('the broker sent records of a format older than Kafka 0.11')
    }
    const batches = modules.createDecoder(bytes)
    const records: unknown[] = []
    while (batches.canReadBytes(recordBatchOverheadBytes)) {
      try {
        for (const record of (await modules.decodeRecordBatch(batches)).records) records.push(record)
      } catch (error) {
        // The last batch of a response may be cut off; the next fetch starts with it.
        if (error instanceof Error && error.name === 'KafkaJSPartialMessageError') break
        throw error
      }
    }
    return records
  }
}
