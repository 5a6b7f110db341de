import {
  partitionOf,
  type Broker,
  type Header,
  type Log,
  type OutRecord,
  type Publisher,
  type TopicNames,
} from '@weir/core'
import type { Codec } from '@weir/kafka'
import type { Receipt } from '@weir/schemas'
import type { EventLog, ReceiptLog } from '../ports.ts'

const refreshMs = 5_000

export interface KafkaLogs {
  readonly events: EventLog
  readonly receipts: ReceiptLog
  /** Waits for what is on its way, then closes. */
  close(): Promise<void>
}

/** `weir.raw` and `weir.receipts`. Throws `topic_missing` or `broker_unavailable` when `weir.raw` cannot be described at start. */
export async function openKafkaLogs(options: {
  readonly broker: Broker
  readonly codec: Codec
  readonly topics: TopicNames
  readonly partitions: number
  readonly log: Log
}): Promise<KafkaLogs> {
  const { broker, codec, topics, partitions, log } = options
  const describe = async (): Promise<string> => (await broker.admin.describe([topics.raw]))[0]?.logId ?? ''
  let logId = await describe()
  const publisher: Publisher = await broker.openPublisher()
  const refresh = (): void => {
    describe().then(
      found => {
        if (found !== logId)
          log.error(
            { before: logId, now: found, topic: topics.raw, alarm: 'log_changed' },
            'weir.raw is another log now',
          )
        logId = found
      },
      (error: unknown) => log.debug({ err: error }, 'weir.raw could not be described'),
    )
  }
  const timer = setInterval(refresh, refreshMs)
  const publish = async (records: readonly OutRecord[]): Promise<void> => {
    try {
      await publisher.publish(records)
    } catch (error) {
      refresh()
      throw error
    }
  }
  return {
    events: {
      logId: () => logId,
      append: async event => {
        const headers: Header[] = event.traceparent === null ? [] : [['traceparent', Buffer.from(event.traceparent)]]
        const partition = partitionOf(event.orderingKey, partitions)
        await publish([
          { topic: topics.raw, partition, key: event.eventKey, value: codec.encode('RawEvent', event), headers },
        ])
      },
    },
    receipts: {
      append: async receipts => await publish(receipts.map(receipt => receiptRecord(options, receipt))),
    },
    close: async () => {
      clearInterval(timer)
      await publisher.close()
    },
  }
}

function receiptRecord(
  { topics, partitions, codec }: { readonly topics: TopicNames; readonly partitions: number; readonly codec: Codec },
  receipt: Receipt,
): OutRecord {
  const key = receipt.eventKey ?? Buffer.from(receipt.source, 'utf8')
  const value = codec.encode('Receipt', receipt)
  return { topic: topics.receipts, partition: partitionOf(key, partitions), key, value, headers: [] }
}
