import { expect } from 'vitest'
import { out, partitions, readAll, textOf, type Case } from './world.ts'

export const reading: readonly Case[] = [
  [
    'never moves a position that is outside the log',
    async world => {
      const { broker } = await world.party()
      const topic = await world.topic()
      const publisher = await broker.openPublisher()
      await publisher.publish(['0', '1', '2', '3'].map(text => out(topic, text)))
      await world.harness.removeBelow({ topic, partition: 0 }, 2)
      const reader = await broker.openReader()
      for (const fromOffset of [5, 0, 1, 5]) {
        const fetched = reader.fetch({ topic, partition: 0, fromOffset, maxWaitMs: 50 })
        await expect(fetched).rejects.toMatchObject({ code: 'log_out_of_range', context: { topic, fromOffset } })
      }
      const fetched = await reader.fetch({ topic, partition: 0, fromOffset: 2, maxWaitMs: 50 })
      expect(fetched).toMatchObject({ startOffset: 2, nextOffset: 4, logStartOffset: 2, highWatermark: 4 })
      expect(await broker.admin.bounds({ topic, partition: 0 })).toEqual({ startOffset: 2, endOffset: 4 })
      await reader.close()
    },
  ],
  [
    'answers a fetch at the end when there is something to read, or else after its time',
    async world => {
      const { broker } = await world.party()
      const topic = await world.topic()
      const publisher = await broker.openPublisher()
      await publisher.publish([out(topic, 'warm')])
      const reader = await broker.openReader()
      const waiting = reader.fetch({ topic, partition: 0, fromOffset: 1, maxWaitMs: 20_000 })
      await publisher.publish([out(topic, 'new')])
      expect((await waiting).records.map(textOf)).toEqual(['new'])
      const nothing = await reader.fetch({ topic, partition: 0, fromOffset: 2, maxWaitMs: 30 })
      expect(nothing).toMatchObject({ records: [], nextOffset: 2, highWatermark: 2 })
      await reader.close()
    },
  ],
  [
    'gives at least one record however small the limit, and all of them over several fetches',
    async world => {
      const { broker } = await world.party()
      const topic = await world.topic()
      const publisher = await broker.openPublisher({ lingerMs: 0 })
      for (const text of ['a', 'b', 'c']) await publisher.publish([out(topic, text)])
      const reader = await broker.openReader()
      const texts: (string | null)[] = []
      for (let fromOffset = 0; fromOffset < 3;) {
        const fetched = await reader.fetch({ topic, partition: 0, fromOffset, maxBytes: 1, maxWaitMs: 50 })
        expect(fetched.nextOffset).toBeGreaterThan(fromOffset)
        texts.push(...fetched.records.map(textOf))
        fromOffset = fetched.nextOffset
      }
      expect(texts).toEqual(['a', 'b', 'c'])
      await reader.close()
    },
  ],
  [
    'says topic_missing for a topic or a partition that is not there',
    async world => {
      const { broker } = await world.party()
      const topic = await world.topic()
      const nowhere = `${world.name}.nowhere`
      const reader = await broker.openReader()
      await expect(broker.admin.describe([topic, nowhere])).rejects.toMatchObject({ code: 'topic_missing' })
      await expect(broker.admin.bounds({ topic, partition: 99 })).rejects.toMatchObject({ code: 'topic_missing' })
      const fetched = reader.fetch({ topic: nowhere, partition: 0, fromOffset: 0 })
      await expect(fetched).rejects.toMatchObject({ code: 'topic_missing' })
      await reader.close()
    },
  ],
  [
    'gives a topic that was made again another log id',
    async world => {
      const { broker } = await world.party()
      const topic = await world.topic()
      const publisher = await broker.openPublisher()
      await publisher.publish([out(topic, 'old')])
      const [before] = await broker.admin.describe([topic])
      expect(before).toMatchObject({ topic, partitions })
      expect(before?.logId).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
      await world.harness.deleteTopic(topic)
      await world.harness.createTopic(topic, { partitions })
      const [after] = await broker.admin.describe([topic])
      expect(after?.logId).not.toBe(before?.logId)
      expect((await broker.admin.bounds({ topic, partition: 0 })).endOffset).toBe(0)
    },
  ],
  [
    'finds offsets by time, and the end when there is none as late',
    async world => {
      const { broker } = await world.party()
      const topic = await world.topic()
      const publisher = await broker.openPublisher()
      await publisher.publish([out(topic, 'a')])
      const { records } = await readAll(broker, topic)
      const atMs = records[0]?.timestampMs ?? 0
      expect(await broker.admin.offsetAt({ topic, partition: 0 }, atMs)).toBe(0)
      expect(await broker.admin.offsetAt({ topic, partition: 0 }, atMs + 3_600_000)).toBe(1)
    },
  ],
]
