import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CopyEncoder, type CopyColumn, type CopyType, type CopyValue } from './copy-encoder.ts'

/** A second, independent reader of the COPY binary format. */
function decode(stream: Buffer): (Buffer | null)[][] {
  expect(stream.subarray(0, 11).toString('latin1')).toBe('PGCOPY\n\xff\r\n\0')
  const rows: (Buffer | null)[][] = []
  let at = 19
  for (;;) {
    const count = stream.readInt16BE(at)
    at += 2
    if (count === -1) break
    const row: (Buffer | null)[] = []
    for (let i = 0; i < count; i++) {
      const length = stream.readInt32BE(at)
      at += 4
      row.push(length === -1 ? null : stream.subarray(at, at + length))
      if (length > 0) at += length
    }
    rows.push(row)
  }
  expect(at).toBe(stream.length)
  return rows
}

function encode(columns: readonly CopyColumn[], rows: readonly (readonly CopyValue[])[], chunkBytes?: number): Buffer {
  return Buffer.concat([...new CopyEncoder(columns, chunkBytes).encode(rows)])
}

const columns = (...types: CopyType[]): CopyColumn[] => types.map((type, i) => ({ name: `c${i}`, type }))

describe('CopyEncoder', () => {
  it('writes each type as Postgres reads it', () => {
    const row: readonly CopyValue[] = [
      -2,
      70_000,
      -(2n ** 63n),
      'é',
      Buffer.from([0, 255]),
      '00112233-4455-6677-8899-aabbccddeeff',
      true,
      '2000-01-02',
      new Date('2000-01-01T00:00:01.5Z'),
      '{"a":1}',
      null,
    ]
    const types = [
      'int2',
      'int4',
      'int8',
      'text',
      'bytea',
      'uuid',
      'bool',
      'date',
      'timestamptz',
      'jsonb',
      'text',
    ] as const
    const [found] = decode(encode(columns(...types), [row]))
    expect(found?.map(value => value?.toString('hex') ?? null)).toEqual([
      'fffe',
      '00011170',
      '8000000000000000',
      'c3a9',
      '00ff',
      '00112233445566778899aabbccddeeff',
      '01',
      '00000001',
      '000000000016e360',
      `01${Buffer.from('{"a":1}').toString('hex')}`,
      null,
    ])
  })

  it('loses and reorders nothing, whatever the sizes and however small the chunks', () => {
    const size = fc.oneof(fc.nat(40), fc.integer({ min: 16_380, max: 16_390 }), fc.constant(100_000))
    const cell = fc.tuple(size, size, fc.boolean())
    fc.assert(
      fc.property(fc.array(cell, { maxLength: 12 }), fc.integer({ min: 16, max: 70_000 }), (cells, chunkBytes) => {
        const rows = cells.map(([bytes, chars, missing], i): CopyValue[] => [
          missing ? null : Buffer.alloc(bytes, i),
          'ü'.repeat(chars / 2),
          i,
        ])
        const found = decode(encode(columns('bytea', 'text', 'int4'), rows, chunkBytes))
        expect(found.length).toBe(rows.length)
        for (const [i, row] of found.entries()) {
          const [bytes, text, number] = rows[i] ?? []
          expect(row[0] === null ? null : row[0]?.equals(bytes as Buffer)).toBe(bytes === null ? null : true)
          expect(row[1]?.toString('utf8')).toBe(text)
          expect(row[2]?.readInt32BE()).toBe(number)
        }
      }),
      { numRuns: 100 },
    )
  })

  it.each<[CopyType, CopyValue]>([
    ['int2', 32_768],
    ['int4', 1.5],
    ['int4', '1'],
    ['int8', 2 ** 53],
    ['int8', 2n ** 63n],
    ['text', 'a\u0000b'],
    ['text', '\ud800'],
    ['text', 1],
    ['bytea', 'text'],
    ['uuid', 'not-a-uuid'],
    ['uuid', Buffer.alloc(15)],
    ['bool', 1],
    ['date', '2024-02-30'],
    ['date', '1.2.2024'],
    ['timestamptz', new Date(NaN)],
    ['jsonb', '"\u0000"'],
  ])('refuses a value that %s cannot hold: %s', (type, value) => {
    expect(() => encode([{ name: 'price', type }], [[value]])).toThrowError(
      expect.objectContaining({
        code: 'invalid_value',
        message: expect.stringContaining('COPY row 0, column price') as string,
      }),
    )
  })

  it('refuses a row with another number of values than there are columns', () => {
    expect(() => encode(columns('int4'), [[1], [1, 2]])).toThrow('COPY row 1 has 2 values for 1 columns')
  })
})
