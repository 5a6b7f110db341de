import { expect } from 'vitest'
import { out, readAll, type Case, type Party } from './world.ts'

export const writing: readonly Case[] = [
  [
    'commits outputs and positions together, and a reader passes the marker behind them',
    async world => {
      const { broker } = await world.party()
      const [input, output] = [await world.topic('in'), await world.topic('out')]
      const group = `${world.name}.g`
      const tp = { topic: input, partition: 2 }
      const writer = await broker.openWriter({ transactionalId: `${group}.2`, group })
      expect(await broker.admin.committed(group, [tp])).toEqual([])
      const batch = { records: [out(output, 'a'), out(output, 'b')], positions: [{ ...tp, nextOffset: 7 }] }
      expect(await writer.run(batch)).toEqual({ kind: 'committed' })
      expect(await broker.admin.committed(group, [tp])).toEqual([{ ...tp, nextOffset: 7 }])
      const read = await readAll(broker, output)
      expect([read.texts, read.position, read.fetched.highWatermark]).toEqual([['a', 'b'], 3, 3])
      await writer.close()
    },
  ],
  [
    'commits positions alone, one transaction after another',
    async world => {
      const { broker } = await world.party()
      const topic = await world.topic()
      const group = `${world.name}.g`
      const writer = await broker.openWriter({ transactionalId: group, group })
      for (const nextOffset of [1, 2, 3]) {
        const batch = { records: [], positions: [{ topic, partition: 0, nextOffset }] }
        expect(await writer.run(batch)).toEqual({ kind: 'committed' })
      }
      expect(await broker.admin.committed(group, [{ topic, partition: 0 }])).toMatchObject([{ nextOffset: 3 }])
      await writer.close()
    },
  ],
  [
    'commits more records than one request or one batch may hold, in order',
    async world => {
      const { broker } = await world.party()
      const topic = await world.topic()
      const group = `${world.name}.g`
      const writer = await broker.openWriter({ transactionalId: group, group })
      const texts = Array.from({ length: 2_500 }, (_, i) => `${i}`.padEnd(200, '.'))
      expect(await writer.run({ records: texts.map(text => out(topic, text)), positions: [] })).toEqual({
        kind: 'committed',
      })
      expect((await readAll(broker, topic)).texts).toEqual(texts)
      await writer.close()
    },
  ],
  [
    'fences the last owner of its id, whose records are never seen',
    async world => {
      const { broker } = await world.party()
      const topic = await world.topic()
      const group = `${world.name}.g`
      const first = await broker.openWriter({ transactionalId: group, group })
      expect(await first.run({ records: [out(topic, 'mine')], positions: [] })).toEqual({ kind: 'committed' })
      const other = await world.party()
      const second = await other.broker.openWriter({ transactionalId: group, group })
      const positions = [{ topic, partition: 0, nextOffset: 99 }]
      expect(await first.run({ records: [out(topic, 'zombie')], positions })).toEqual({ kind: 'fenced' })
      await expect(first.run({ records: [], positions: [] })).rejects.toThrow(/open a new one/)
      expect(await second.run({ records: [out(topic, 'next')], positions: [] })).toEqual({ kind: 'committed' })
      expect((await readAll(broker, topic)).texts).toEqual(['mine', 'next'])
      expect(await broker.admin.committed(group, [{ topic, partition: 0 }])).toEqual([])
    },
  ],
  [
    'aborts what its last owner left open before it resolves, so that the offsets read then are final',
    async world => {
      const first = await world.party()
      const topic = await world.topic()
      const group = `${world.name}.g`
      const positions = [{ topic, partition: 0, nextOffset: 5 }]
      const writer = await first.broker.openWriter({ transactionalId: group, group })
      first.loseAnswer('offsets')
      expect(await writer.run({ records: [out(topic, 'open')], positions })).toMatchObject({ kind: 'unknown' })
      const held = await readAll(first.broker, topic)
      expect([held.texts, held.position, held.fetched.lastStableOffset]).toEqual([[], 0, 0])
      const { broker } = await world.party()
      const next = await broker.openWriter({ transactionalId: group, group })
      expect(await broker.admin.committed(group, [{ topic, partition: 0 }])).toEqual([])
      const read = await readAll(broker, topic)
      expect([read.texts, read.position]).toEqual([[], 2])
      expect(await next.run({ records: [out(topic, 'again')], positions })).toEqual({ kind: 'committed' })
      expect((await readAll(broker, topic)).texts).toEqual(['again'])
      await next.close()
    },
  ],
  [
    'tells by the committed offset how an unknown commit ended',
    async world => {
      const { broker, loseAnswer } = await world.party()
      const topic = await world.topic()
      const group = `${world.name}.g`
      const writer = await broker.openWriter({ transactionalId: group, group })
      loseAnswer('commit')
      const positions = [{ topic, partition: 0, nextOffset: 5 }]
      expect(await writer.run({ records: [out(topic, 'once')], positions })).toMatchObject({ kind: 'unknown' })
      await expect(writer.run({ records: [], positions })).rejects.toThrow(/open a new one/)
      const next = await broker.openWriter({ transactionalId: group, group })
      expect(await broker.admin.committed(group, [{ topic, partition: 0 }])).toMatchObject([{ nextOffset: 5 }])
      expect((await readAll(broker, topic)).texts).toEqual(['once'])
      await next.close()
    },
  ],
  [
    'names the topic that refuses a record for good, commits nothing, and leaves others unharmed',
    async world => {
      const { broker } = await world.party()
      const [good, small] = [await world.topic('good'), await world.topic('small', 5_000)]
      const nowhere = `${world.name}.nowhere`
      const group = `${world.name}.g`
      const positions = [{ topic: good, partition: 0, nextOffset: 1 }]
      const open = () => broker.openWriter({ transactionalId: group, group })
      const large = { ...out(small, 'x'), value: Buffer.alloc(6_000) }
      expect(await (await open()).run({ records: [out(good, 'a'), large], positions })).toMatchObject({
        kind: 'refused',
        topic: small,
        code: 'record_too_large',
      })
      expect(await (await open()).run({ records: [out(good, 'a'), out(nowhere, 'b')], positions })).toMatchObject({
        kind: 'refused',
        topic: nowhere,
        code: 'topic_missing',
      })
      expect(await broker.admin.committed(group, [{ topic: good, partition: 0 }])).toEqual([])
      const writer = await open()
      expect(await writer.run({ records: [out(good, 'a'), out(small, 'b')], positions })).toEqual({ kind: 'committed' })
      expect((await readAll(broker, good)).texts).toEqual(['a'])
      await writer.close()
    },
  ],
  [
    'shows only committed records when transactions interleave and the last to begin aborts first',
    async world => {
      const parties = [await world.party(), await world.party(), await world.party()]
      const topic = await world.topic()
      const { broker } = parties[0] as Party
      const ids = ['x', 'y', 'z'].map(id => `${world.name}.${id}`)
      const positions = [{ topic, partition: 3, nextOffset: 1 }]
      for (const [i, { broker: own, loseAnswer }] of parties.entries()) {
        const group = ids[i] ?? ''
        const writer = await own.openWriter({ transactionalId: group, group })
        loseAnswer('offsets')
        const records = ['1', '2'].map(text => out(topic, `aborted ${i} ${text}`))
        expect(await writer.run({ records, positions })).toMatchObject({ kind: 'unknown' })
      }
      const good = `${world.name}.good`
      const writer = await broker.openWriter({ transactionalId: good, group: good })
      expect(await writer.run({ records: [out(topic, 'committed')], positions })).toEqual({ kind: 'committed' })
      for (const transactionalId of ids.toReversed()) {
        await broker.openWriter({ transactionalId, group: transactionalId })
      }
      const { fetched } = await readAll(broker, topic)
      for (let from = 0; from < fetched.highWatermark; from++) {
        const read = await readAll(broker, topic, from)
        expect([from, read.texts, read.position]).toEqual([from, from <= 6 ? ['committed'] : [], fetched.highWatermark])
      }
    },
  ],
]
