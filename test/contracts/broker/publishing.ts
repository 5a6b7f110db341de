import type { OutRecord } from '@weir/core'
import { expect } from 'vitest'
import { offsetsOf, out, readAll, textOf, type Case } from './world.ts'

export const publishing: readonly Case[] = [
  [
    'acknowledges records in the order given, and a reader gets key, value and headers as they were',
    async world => {
      const { broker } = await world.party()
      const topic = await world.topic()
      const publisher = await broker.openPublisher()
      const headers = [
        ['toString', Buffer.from('a')],
        ['ce_id', Buffer.alloc(0)],
        ['twice', Buffer.from('1')],
        ['twice', Buffer.from('2')],
      ] as const
      const records: OutRecord[] = [
        { topic, partition: 0, key: null, value: Buffer.alloc(0), headers },
        { topic, partition: 1, key: Buffer.from('k'), value: null, headers: [] },
        { topic, partition: 0, key: Buffer.from([0, 255]), value: Buffer.from([255, 0]), headers: [] },
      ]
      expect(await publisher.publish(records)).toEqual([
        { topic, partition: 0, offset: 0 },
        { topic, partition: 1, offset: 0 },
        { topic, partition: 0, offset: 1 },
      ])
      const read = await readAll(broker, topic)
      expect(read.records.map(({ key, value }) => [key, value])).toEqual([
        [null, Buffer.alloc(0)],
        [Buffer.from([0, 255]), Buffer.from([255, 0])],
      ])
      expect(read.records[0]?.headers).toEqual(headers)
      expect((await readAll(broker, topic, 0, 1)).records).toMatchObject([{ key: Buffer.from('k'), value: null }])
    },
  ],
  [
    'keeps the order of a partition over many publishes at once',
    async world => {
      const { broker } = await world.party()
      const topic = await world.topic()
      const publisher = await broker.openPublisher()
      const texts = Array.from({ length: 3_000 }, (_, i) => String(i))
      const acks = await Promise.all(texts.map(text => publisher.publish([out(topic, text)])))
      expect(acks.flatMap(offsetsOf)).toEqual(texts.map(Number))
      expect((await readAll(broker, topic)).texts).toEqual(texts)
    },
  ],
  [
    'refuses a record that is too large without harming any other',
    async world => {
      const { broker } = await world.party()
      const topic = await world.topic()
      const publisher = await broker.openPublisher()
      const tooLarge = { ...out(topic, 'x'), value: Buffer.alloc(100_001) }
      const [good, bad, again] = await Promise.allSettled([
        publisher.publish([out(topic, 'before')]),
        publisher.publish([tooLarge]),
        publisher.publish([out(topic, 'after')]),
      ])
      expect(good).toMatchObject({ status: 'fulfilled' })
      expect(bad).toMatchObject({ status: 'rejected', reason: { code: 'record_too_large', context: { topic } } })
      expect(again).toMatchObject({ status: 'fulfilled' })
      expect((await readAll(broker, topic)).texts).toEqual(['before', 'after'])
    },
  ],
  [
    'takes a record exactly as large as its topic allows',
    async world => {
      const { broker } = await world.party()
      const topic = await world.topic()
      const publisher = await broker.openPublisher()
      const largest = { ...out(topic, 'x'), value: Buffer.alloc(100_000 - 61 - 15) }
      expect(await publisher.publish([largest, largest])).toHaveLength(2)
    },
  ],
  [
    'refuses a topic that is not there, and names it',
    async world => {
      const { broker } = await world.party()
      const publisher = await broker.openPublisher()
      const topic = `${world.name}.nowhere`
      await expect(publisher.publish([out(topic, 'a')])).rejects.toMatchObject({
        code: 'topic_missing',
        context: { topic },
      })
    },
  ],
  [
    'is full beyond its limits, and free again when what waited is done',
    async world => {
      const { broker } = await world.party()
      const topic = await world.topic()
      const publisher = await broker.openPublisher({ maxQueuedRecords: 2 })
      const three = [out(topic, '1'), out(topic, '2'), out(topic, '3')]
      await expect(publisher.publish(three)).rejects.toMatchObject({ code: 'publisher_full' })
      expect(await publisher.publish(three.slice(0, 2))).toHaveLength(2)
      expect(await publisher.publish(three.slice(2))).toHaveLength(1)
    },
  ],
  [
    'acknowledges what is in the log when an answer was lost',
    async world => {
      const { broker, loseAnswer } = await world.party()
      const topic = await world.topic()
      const publisher = await broker.openPublisher()
      await publisher.publish([out(topic, 'first')])
      loseAnswer('publish')
      const [second] = await publisher.publish([out(topic, 'second')])
      const [third] = await publisher.publish([out(topic, 'third')])
      const { records } = await readAll(broker, topic)
      const at = (offset: number | undefined) => records.filter(record => record.offset === offset).map(textOf)
      expect([at(second?.offset), at(third?.offset)]).toEqual([['second'], ['third']])
    },
  ],
]
