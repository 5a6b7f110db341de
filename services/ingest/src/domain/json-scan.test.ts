import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseJson, scalarAt, type JsonView } from './json-body.ts'
import { elementsOf, isArray, isObject, membersOf, nameOf, rootSlice, sliceAt, type Slice } from './json-scan.ts'
import { valueAt } from './json-pointer.ts'

function viewOf(text: string): JsonView {
  const parsed = parseJson(Buffer.from(text))
  if (parsed.kind === 'fault') throw new Error(parsed.fault)
  return parsed.view
}

function sliced(text: string, tokens: readonly string[]): string | null {
  const view = viewOf(text)
  const slice = sliceAt(view.bytes, view.slice, tokens)
  return slice === null ? null : view.bytes.toString('utf8', slice.start, slice.end)
}

/** JSON text of a value with random white space and, for strings, random escapes. */
const spaced = (value: unknown, spaces: readonly string[]): string => {
  let i = 0
  const space = (): string => spaces[i++ % spaces.length] ?? ''
  const write = (v: unknown): string => {
    if (Array.isArray(v))
      return `${space()}[${space()}${v.map(write).join(`${space()},${space()}`)}${space()}]${space()}`
    if (typeof v === 'object' && v !== null) {
      const members = Object.entries(v).map(
        ([k, x]) => `${space()}${JSON.stringify(k)}${space()}:${space()}${write(x)}`,
      )
      return `${space()}{${members.join(',')}${space()}}${space()}`
    }
    return space() + JSON.stringify(v) + space()
  }
  return write(value)
}

/** Pointer tokens of the value and of everything below it. */
function pathsOf(value: unknown): string[][] {
  if (typeof value !== 'object' || value === null) return [[]]
  const below = Object.entries(value).flatMap(([name, v]) => pathsOf(v).map(path => [name, ...path]))
  return [[], ...below]
}

function namesAt(bytes: Buffer, slice: Slice): Set<string> {
  if (isArray(bytes, slice)) return new Set(elementsOf(bytes, slice).map((_, i) => String(i)))
  return new Set(isObject(bytes, slice) ? membersOf(bytes, slice).map(member => nameOf(bytes, member)) : [])
}

function namesOf(value: unknown): Set<string> {
  return new Set(typeof value === 'object' && value !== null ? Object.keys(value) : [])
}

describe('the JSON scanner', () => {
  it('finds for every path the bytes that JSON.parse read its value from', () => {
    const spaces = fc.array(fc.constantFrom('', ' ', '\n', '\t\r'), { minLength: 1, maxLength: 5 })
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), spaces, (value, ws) => {
        const view = viewOf(spaced(value, ws))
        for (const tokens of pathsOf(view.value)) {
          const slice = sliceAt(view.bytes, view.slice, tokens) ?? { start: 0, end: 0 }
          const text = view.bytes.toString('utf8', slice.start, slice.end)
          expect(text).toBe(text.trim())
          expect(JSON.parse(text)).toEqual(valueAt(view.value, tokens))
          expect(namesAt(view.bytes, slice)).toEqual(namesOf(valueAt(view.value, tokens)))
        }
      }),
      { numRuns: 400 },
    )
  })

  it('takes the last of repeated names, as JSON.parse does, however they are escaped', () => {
    expect(sliced('{"a":1,"\\u0061":2}', ['a'])).toBe('2')
    expect(sliced('{"__proto__":{"x":1},"__proto__":[7]}', ['__proto__', '0'])).toBe('7')
  })

  it('is not misled by brackets, quotes and escapes inside strings', () => {
    expect(sliced('{"a":"}\\"]{\\\\","b":{"c":"\\\\"}}', ['b', 'c'])).toBe('"\\\\"')
  })

  it('passes a byte order mark', () => {
    const view = viewOf('\ufeff {"a":1}')
    expect(rootSlice(view.bytes)).toEqual(view.slice)
    expect(view.bytes.toString('utf8', view.slice.start, view.slice.end)).toBe('{"a":1}')
  })

  it('finds nothing where there is nothing', () => {
    expect(sliced('{"a":[1]}', ['a', '01'])).toBeNull()
    expect(sliced('{"a":[1]}', ['a', '1'])).toBeNull()
    expect(sliced('{"a":1}', ['a', 'b'])).toBeNull()
    expect(sliced('{}', ['toString'])).toBeNull()
  })
})

describe('scalars as text', () => {
  it('keep numbers that a double cannot hold', () => {
    const view = viewOf('{"id":9007199254740993,"n":-0,"e":1e400,"d":1.50,"i":7,"b":true,"s":"x","o":{},"z":null}')
    const text = (name: string): unknown => scalarAt(view, [name])
    expect(text('id')).toEqual({ kind: 'text', text: '9007199254740993' })
    expect(text('e')).toEqual({ kind: 'text', text: '1e400' })
    expect(text('d')).toEqual({ kind: 'text', text: '1.5' })
    expect(text('i')).toEqual({ kind: 'text', text: '7' })
    expect(text('n')).toEqual({ kind: 'text', text: '0' })
    expect(text('b')).toEqual({ kind: 'text', text: 'true' })
    expect(text('s')).toEqual({ kind: 'text', text: 'x' })
    expect(text('o')).toEqual({ kind: 'not_scalar' })
    expect(text('z')).toEqual({ kind: 'absent' })
    expect(text('hasOwnProperty')).toEqual({ kind: 'absent' })
  })
})

describe('parsing', () => {
  it('names each fault and never throws', () => {
    const fault = (bytes: Buffer): unknown => {
      const parsed = parseJson(bytes)
      return parsed.kind === 'fault' ? parsed.fault : 'json'
    }
    expect(fault(Buffer.alloc(0))).toBe('empty')
    expect(fault(Buffer.from('['.repeat(100_000) + ']'.repeat(100_000)))).toBe('too_deep')
    expect(fault(Buffer.from('['.repeat(64) + ']'.repeat(64)))).toBe('json')
    expect(fault(Buffer.from([0x22, 0xff, 0x22]))).toBe('not_utf8')
    expect(fault(Buffer.from('{"a":'))).toBe('not_json')
    expect(fault(Buffer.from('"\\ud800"'))).toBe('json')
  })
})
