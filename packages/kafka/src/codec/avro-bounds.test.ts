import { contracts, type ContractName } from '@weir/schemas'
import avsc from 'avsc'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { boundsCheck, type AvroSchema } from './avro-bounds.ts'

const names = Object.keys(contracts) as ContractName[]
const typeOf = (name: ContractName) => avsc.Type.forSchema(contracts[name] as unknown as avsc.Schema)
const checkOf = (name: ContractName) => boundsCheck(contracts[name] as unknown as AvroSchema)

describe('bounds of Avro bytes', () => {
  it.each(names)('accepts every %s that avsc writes, and refuses it when its end is cut off', name => {
    const type = typeOf(name)
    const check = checkOf(name)
    for (let i = 0; i < 50; i++) {
      const bytes = type.toBuffer(type.random())
      expect(check(bytes, 0)).toBeNull()
      expect(check(bytes.subarray(0, bytes.length - 1), 0)).not.toBeNull()
      expect(check(Buffer.concat([bytes, Buffer.from([0])]), 0)).toBe('there are bytes behind the value')
    }
  })

  it.each(names)('refuses what avsc refuses as %s, and never takes longer than its bytes', name => {
    const type = typeOf(name)
    const check = checkOf(name)
    const property = fc.property(fc.uint8Array({ maxLength: 200 }), array => {
      const bytes = Buffer.from(array)
      if (check(bytes, 0) !== null) return
      // What is in bounds, avsc reads to its end; it may still refuse a number or a boolean.
      expect(() => type.fromBuffer(bytes)).not.toThrow(/truncated|trailing/)
    })
    fc.assert(property, { numRuns: 500 })
  })

  it('refuses an array that claims 2^50 items at once', () => {
    const check = boundsCheck({ type: 'array', items: 'string' })
    const bytes = Buffer.from('8080808080808004', 'hex')
    expect(check(bytes, 0)).toBe('it claims more items than it has bytes')
  })

  it('refuses items of no bytes that come without end', () => {
    const check = boundsCheck({ type: 'array', items: 'null' })
    expect(check(Buffer.from('feffffff0f00', 'hex'), 0)).toBe('it claims more items than it has bytes')
  })

  it('refuses a length that points back', () => {
    expect(boundsCheck('string')(Buffer.from('0161', 'hex'), 0)).toBe('a length points outside of it')
  })

  it('refuses values of a recursive schema that are nested too deep', () => {
    const check = boundsCheck({ type: 'record', name: 'Node', fields: [{ type: ['null', 'Node'] }] })
    expect(check(Buffer.from([2, 2, 0]), 0)).toBeNull()
    expect(check(Buffer.alloc(1_000, 2), 0)).toBe('it is nested deeper than 32')
  })
})
