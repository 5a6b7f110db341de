import { describe, expect, it } from 'vitest'
import { childTraceparent, parseTraceparent } from './trace-context.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const parentId = 'b7ad6b7169203331'

describe('traceparent', () => {
  it('is read as the standard writes it', () => {
    expect(parseTraceparent(`00-${traceId}-${parentId}-01`)).toEqual({ traceId, parentId, flags: 1 })
    expect(parseTraceparent(`00-${traceId}-${parentId}-00`)?.flags).toBe(0)
  })

  it('of a later version is read by its first fields', () => {
    expect(parseTraceparent(`cc-${traceId}-${parentId}-01-what-the-future-brings`)?.traceId).toBe(traceId)
    expect(parseTraceparent(`cc-${traceId}-${parentId}-ff`)?.flags).toBe(3)
  })

  it.each([
    ['nothing', null],
    ['empty text', ''],
    ['version ff', `ff-${traceId}-${parentId}-01`],
    ['version 00 with more fields', `00-${traceId}-${parentId}-01-more`],
    ['capital letters', `00-${traceId.toUpperCase()}-${parentId}-01`],
    ['an all-zero trace id', `00-${'0'.repeat(32)}-${parentId}-01`],
    ['an all-zero parent id', `00-${traceId}-${'0'.repeat(16)}-01`],
    ['a short id', `00-${traceId.slice(1)}-${parentId}-01`],
    ['spaces around it', ` 00-${traceId}-${parentId}-01`],
    ['a line feed after it', `00-${traceId}-${parentId}-01\n`],
  ])('is not taken from %s', (_, text) => {
    expect(parseTraceparent(text)).toBeNull()
  })

  it('of a child keeps trace and flags and has a span of its own', () => {
    const child = parseTraceparent(childTraceparent(`00-${traceId}-${parentId}-00`))
    expect(child).toMatchObject({ traceId, flags: 0 })
    expect(child?.parentId).not.toBe(parentId)
    expect(childTraceparent({ traceId, parentId, flags: 1 })).toMatch(new RegExp(`^00-${traceId}-[0-9a-f]{16}-01$`))
  })

  it('begins a new sampled trace without a valid parent', () => {
    const [one, two] = [parseTraceparent(childTraceparent(null)), parseTraceparent(childTraceparent('rubbish'))]
    expect(one?.flags).toBe(3)
    expect(one?.traceId).not.toBe(two?.traceId)
  })
})
