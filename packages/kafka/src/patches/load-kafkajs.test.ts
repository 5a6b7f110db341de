import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { copyKafkajs, type KafkajsCopy } from '../testing/kafkajs-copy.ts'
import { loadKafkajs } from './load-kafkajs.ts'

const copies: KafkajsCopy[] = []
afterEach(() => copies.splice(0).forEach(copy => copy.remove()))
const copy = () => {
  const made = copyKafkajs()
  copies.push(made)
  return made
}
const inside = <T>(folder: string, file: string) => createRequire(import.meta.url)(join(folder, file)) as T

describe('loading kafkajs', () => {
  it('refuses another version and names both', () => {
    const { folder, load } = copy()
    const manifest = join(folder, 'package.json')
    writeFileSync(manifest, readFileSync(manifest, 'utf8').replace('"2.2.4"', '"2.2.5"'))
    expect(() => load()).toThrow(/kafkajs 2\.2\.5 is installed.*exactly 2\.2\.4/)
  })

  it('refuses to patch a file that is not the published one and names it', () => {
    const { folder, load } = copy()
    appendFileSync(join(folder, 'src/consumer/filterAbortedMessages.js'), '\n')
    expect(() => load()).toThrow(/src\/consumer\/filterAbortedMessages\.js of kafkajs is not the published file/)
  })

  it('refuses when kafkajs was loaded before its patches', () => {
    const { folder, load } = copy()
    inside(folder, 'index.js')
    expect(() => load()).toThrow(/was loaded before its patches/)
  })

  it('gives the same client each time', () => {
    expect(loadKafkajs()).toBe(loadKafkajs())
  })

  it('knows the code of a fenced producer', () => {
    expect(loadKafkajs().createErrorFromCode(90)).toMatchObject({ type: 'PRODUCER_FENCED', code: 90, retriable: false })
  })
})

interface Internals {
  readonly RecordBatch: (batch: object) => Promise<{ readonly buffer: Buffer }>
  readonly decode: (decoder: object) => Promise<{ readonly records: Decoded[] }>
  readonly Decoder: new (buffer: Buffer) => { offset: number }
  readonly Record: (record: object) => object
}
interface Decoded {
  readonly offset: string
  readonly timestamp: string
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: readonly (readonly [string, Buffer])[]
  readonly isControlRecord: boolean
}

function internals(folder: string): Internals {
  return {
    RecordBatch: inside<Pick<Internals, 'RecordBatch'>>(folder, 'src/protocol/recordBatch/v0/index.js').RecordBatch,
    decode: inside(folder, 'src/protocol/recordBatch/v0/decoder.js'),
    Decoder: inside(folder, 'src/protocol/decoder.js'),
    Record: inside(folder, 'src/protocol/recordBatch/record/v0/index.js'),
  }
}

describe('patched decoders', () => {
  it('give a record its headers as a list, whatever their names are', async () => {
    const { folder, load } = copy()
    load()
    const { RecordBatch, decode, Decoder, Record } = internals(folder)
    const headers = { toString: 'a', constructor: ['b', 'c'], ce_id: Buffer.alloc(0) }
    const records = [Record({ offsetDelta: 0, timestampDelta: -3, key: null, value: Buffer.from('v'), headers })]
    const batch = await RecordBatch({ firstOffset: 2 ** 40, firstTimestamp: 1_700_000_000_000, records })
    const [record] = (await decode(new Decoder(batch.buffer))).records
    expect(record).toMatchObject({ offset: String(2 ** 40), key: null, timestamp: '1699999999997' })
    expect(record?.headers.map(([name, value]) => [name, value.toString()])).toEqual([
      ['toString', 'a'],
      ['constructor', 'b'],
      ['constructor', 'c'],
      ['ce_id', ''],
    ])
  })

  it('put a control record at the end of a batch that lost its last records', async () => {
    const { folder, load } = copy()
    load()
    const { RecordBatch, decode, Decoder, Record } = internals(folder)
    const records = [Record({ offsetDelta: 1, key: Buffer.from('k'), value: null })]
    const batch = await RecordBatch({ firstOffset: 10, lastOffsetDelta: 4, records })
    const decoded = (await decode(new Decoder(batch.buffer))).records
    expect(decoded.map(({ offset, isControlRecord }) => [offset, isControlRecord])).toEqual([
      ['11', false],
      ['14', true],
    ])
    const empty = await RecordBatch({ firstOffset: 20, lastOffsetDelta: 2, records: [] })
    const placeholder = (await decode(new Decoder(empty.buffer))).records
    expect(placeholder.map(({ offset, isControlRecord }) => [offset, isControlRecord])).toEqual([['22', true]])
  })

  it('read a batch of 200,000 tiny records without overflowing the stack', async () => {
    const { folder, load } = copy()
    load()
    const { RecordBatch, Decoder, Record } = internals(folder)
    const decodeMessages = inside<(decoder: object) => Promise<Decoded[]>>(
      folder,
      'src/protocol/requests/fetch/v4/decodeMessages.js',
    )
    const one = Record({ offsetDelta: 0, key: null, value: null })
    const records = Array.from({ length: 200_000 }, () => one)
    const batch = await RecordBatch({ firstOffset: 0, lastOffsetDelta: 0, records })
    const size = Buffer.alloc(4)
    size.writeInt32BE(batch.buffer.length)
    expect(await decodeMessages(new Decoder(Buffer.concat([size, batch.buffer])))).toHaveLength(200_000)
  })
})
