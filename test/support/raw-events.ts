import { partitionOf, type OutRecord } from '@weir/core'
import type { RawEvent } from '@weir/schemas'
import type { TestSystem } from './system.ts'

/** Appends raw events as the edge does: key = event key, partition = that of the ordering key. */
export async function publishRaw(test: TestSystem, events: readonly RawEvent[]): Promise<void> {
  const records = events.map((event): OutRecord => {
    const partition = partitionOf(event.orderingKey, test.system.options.partitions)
    const value = test.codec.encode('RawEvent', event)
    return { topic: test.topics.raw, partition, key: event.eventKey, value, headers: [] }
  })
  await publish(test, records)
}

export async function publish(test: TestSystem, records: readonly OutRecord[]): Promise<void> {
  const publisher = await test.broker.openPublisher()
  try {
    await publisher.publish(records)
  } finally {
    await publisher.close()
  }
}

/** Waits until a group has committed everything its input topic holds now. */
export async function untilRead(test: TestSystem, group: string, topic: string, withinMs = 60_000): Promise<void> {
  const tps = Array.from({ length: test.system.options.partitions }, (_, partition) => ({ topic, partition }))
  const ends = await Promise.all(tps.map(tp => test.broker.admin.bounds(tp)))
  const deadline = Date.now() + withinMs
  for (;;) {
    const committed = await test.broker.admin.committed(group, tps)
    const behind = tps.filter((tp, i) => {
      const position = committed.find(p => p.partition === tp.partition)?.nextOffset ?? 0
      return position < (ends[i]?.endOffset ?? 0)
    })
    if (behind.length === 0) return
    if (Date.now() > deadline) throw new Error(`${group} has not read ${topic} to its end within ${withinMs} ms`)
    await new Promise(resolve => setTimeout(resolve, 50))
  }
}
