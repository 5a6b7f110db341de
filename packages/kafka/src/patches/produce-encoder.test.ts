import { createRequire } from 'node:module'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { copyKafkajs, type KafkajsCopy } from '../testing/kafkajs-copy.ts'
import { crc32c } from './crc32c.ts'
import type { Encoded, EncodedRequest, ProduceRequest } from './produce-encoder.ts'

interface Internals {
  readonly produce: (request: ProduceRequest) => EncodedRequest
  readonly createRequest: (options: {
    readonly correlationId: number
    readonly clientId: string
    readonly request: EncodedRequest
  }) => Promise<Encoded>
  readonly crc: (bytes: Buffer) => number
}

const require = createRequire(import.meta.url)
const copies: KafkajsCopy[] = []

function internals(without: readonly ('quick-produce' | 'quick-request')[]): Internals {
  const copy = copyKafkajs()
  copies.push(copy)
  copy.load({ without })
  const inside = <T>(file: string) => require(join(copy.folder, file)) as T
  return {
    produce: inside('src/protocol/requests/produce/v7/request.js'),
    createRequest: inside('src/protocol/request.js'),
    crc: inside('src/protocol/recordBatch/crc32C/index.js'),
  }
}

const bytes = fc.oneof(
  fc.constant(null),
  fc.uint8Array({ maxLength: 40 }).map(array => Buffer.from(array)),
  fc.integer({ min: 50, max: 9_000 }).map(length => Buffer.alloc(length, 7)),
  fc.string({ maxLength: 20 }),
)
const headerValue = fc.oneof(
  fc.uint8Array({ maxLength: 90 }).map(array => Buffer.from(array)),
  fc.string(),
)
const headers = fc.option(
  fc.dictionary(fc.string({ maxLength: 12 }), fc.oneof(headerValue, fc.array(headerValue, { maxLength: 3 }))),
  { nil: undefined },
)
const message = fc.record({ key: bytes, value: bytes, headers }, { requiredKeys: ['key', 'value'] })
const partition = fc.record({
  partition: fc.nat(1_000),
  firstSequence: fc.nat(),
  messages: fc.array(message, { minLength: 1, maxLength: 5 }),
})
const request = fc.record({
  acks: fc.constantFrom(-1, 0, 1),
  timeout: fc.nat(),
  transactionalId: fc.constantFrom(undefined, null, 'weir.dedup.3', 'ü'),
  producerId: fc.bigInt({ min: -1n, max: 2n ** 62n }).map(String),
  producerEpoch: fc.nat(32_000),
  topicData: fc.array(
    fc.record({ topic: fc.string({ maxLength: 20 }), partitions: fc.array(partition, { minLength: 1, maxLength: 3 }) }),
    { minLength: 1, maxLength: 3 },
  ),
})

describe('quick produce request', () => {
  let stock: Internals
  let quick: Internals

  beforeAll(() => {
    vi.spyOn(Date, 'now').mockReturnValue(1_700_000_000_123)
    stock = internals(['quick-produce', 'quick-request'])
    quick = internals([])
  })
  afterAll(() => {
    vi.restoreAllMocks()
    copies.forEach(copy => copy.remove())
  })

  const encoded = async ({ produce, createRequest }: Internals, input: ProduceRequest) => {
    const made = produce(input)
    return (await createRequest({ correlationId: 77, clientId: 'weir-ü', request: made })).buffer
  }

  it('has the same bytes as the original, whatever is sent', async () => {
    const property = fc.asyncProperty(request, async input => {
      expect(await encoded(quick, input as ProduceRequest)).toEqual(await encoded(stock, input as ProduceRequest))
    })
    await fc.assert(property, { numRuns: 300 })
  })

  it('has the same bytes for 1,000 records, where offset deltas take two bytes', async () => {
    const messages = Array.from({ length: 1_000 }, (_, i) => ({ key: String(i), value: Buffer.alloc(i) }))
    const input = { acks: -1, timeout: 1, topicData: [{ topic: 't', partitions: [{ partition: 0, messages }] }] }
    expect(await encoded(quick, input)).toEqual(await encoded(stock, input))
  })

  it('leaves compression and timestamps to the original', async () => {
    const of = (extra: object, more: object = {}): ProduceRequest => ({
      acks: -1,
      timeout: 1,
      topicData: [{ topic: 't', partitions: [{ partition: 0, messages: [{ value: 'v'.repeat(500), ...extra }] }] }],
      ...more,
    })
    const gzip = 1
    for (const input of [of({ timestamp: '1600000000000' }), of({}, { compression: gzip })]) {
      expect(await encoded(quick, input)).toEqual(await encoded(stock, input))
    }
  })

  it('writes a list of headers in its order, with repeated names', async () => {
    const of = (headersOfIt: unknown) => ({
      acks: -1,
      timeout: 1,
      topicData: [
        { topic: 't', partitions: [{ partition: 0, messages: [{ value: null, headers: headersOfIt as never }] }] },
      ],
    })
    const [one, two] = [Buffer.from('1'), Buffer.from('2')]
    const list = [
      ['a', one],
      ['a', two],
      ['b', one],
    ]
    expect(await encoded(quick, of(list))).toEqual(await encoded(stock, of({ a: [one, two], b: one })))
  })

  it('computes the CRC of any bytes as the original does', () => {
    const property = fc.property(fc.uint8Array({ maxLength: 100 }), array => {
      expect(crc32c(Buffer.from(array))).toBe(stock.crc(Buffer.from(array)))
    })
    fc.assert(property, { numRuns: 300 })
    expect(crc32c(Buffer.from('123456789'))).toBe(0xe3069283)
  })
})
