import { WeirError } from '@weir/core'
import pg from 'pg'

const oid = { int8: 20, date: 1082, int8Array: 1016, dateArray: 1182 } as const

/** An int8 as a number; text that a number cannot hold exactly is an error, never a rounded value. */
function parseInt8(text: string): number {
  const value = Number(text)
  if (Number.isSafeInteger(value)) return value
  throw new WeirError('internal', `Postgres sent the bigint ${text}, which a JavaScript number cannot hold exactly`, {
    context: { value: text },
  })
}

function parseArray(text: string, parse: (item: string) => unknown): unknown[] {
  if (text === '{}') return []
  return text
    .slice(1, -1)
    .split(',')
    .map(item => (item === 'NULL' ? null : parse(item)))
}

const overrides: ReadonlyMap<number, (text: string) => unknown> = new Map<number, (text: string) => unknown>([
  [oid.int8, parseInt8],
  [oid.int8Array, text => parseArray(text, parseInt8)],
  [oid.date, text => text],
  [oid.dateArray, text => parseArray(text, item => item)],
])

/** How values come back: int8 as number, date as `YYYY-MM-DD` text (a Date would shift it by the time zone), the rest as pg has it. */
export const resultTypes = {
  getTypeParser(id: number, format?: 'text' | 'binary'): (value: string) => unknown {
    const override = format === 'binary' ? undefined : overrides.get(id)
    if (override) return override
    return pg.types.getTypeParser(id, format ?? 'text') as (value: string) => unknown
  },
}
