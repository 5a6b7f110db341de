import {
  partitionOf,
  WeirError,
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
/** How long an event may take to be acknowledged, below the 10 s that GitHub waits for its answer. It may still be written later. */
const appendTimeoutMs = 8_000

export interface KafkaLogs {
  readonly events: EventLog
  readonly receipts: ReceiptLog
  /** Why Kafka takes no events just now; `null` when the last one was taken. */
  fault(): string | null
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
  let fault: string | null = null
  const publish = async (records: readonly OutRecord[]): Promise<void> => {
    try {
      await withinTime(publisher.publish(records), appendTimeoutMs)
      fault = null
    } catch (error) {
      if (error instanceof WeirError && error.code === 'broker_unavailable') fault = 'Kafka takes no events'
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
    fault: () => fault,
    close: async () => {
      clearInterval(timer)
      await publisher.close()
    },
  }
}

/** Rejects when `work` takes longer; what it ends in later has no one waiting for it. */
async function withinTime(work: Promise<unknown>, timeoutMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(new WeirError('broker_unavailable', `Kafka has acknowledged nothing for ${timeoutMs} ms`))
    }, timeoutMs)
  })
  try {
    await Promise.race([work, timeout])
  } finally {
    clearTimeout(timer)
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
