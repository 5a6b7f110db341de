import { exactNumber } from './json-body.ts'
import { elementsOf, isArray, isObject, membersOf, nameOf, type Slice } from './json-scan.ts'

/**
 * RFC 8785 form of a JSON value, read from its bytes: white space, key order and spelling do not matter. One departure: a
 * number with more than 15 digits keeps its spelling, so that 2^53 and 2^53+1 stay two. The depth must be bounded before.
 */
export function canonicalJson(bytes: Buffer, slice: Slice): string {
  if (isObject(bytes, slice)) {
    // A later member of the same name replaces the earlier one, as in JSON.parse.
    const members = new Map(membersOf(bytes, slice).map(member => [nameOf(bytes, member), member.value]))
    // Default order is by UTF-16 code units, which is what RFC 8785 asks for.
    const names = [...members.keys()].sort()
    const parts = names.map(name => {
      const value = members.get(name)
      return value === undefined ? '' : `${JSON.stringify(name)}:${canonicalJson(bytes, value)}`
    })
    return `{${parts.join(',')}}`
  }
  if (isArray(bytes, slice)) {
    return `[${elementsOf(bytes, slice)
      .map(element => canonicalJson(bytes, element))
      .join(',')}]`
  }
  const text = bytes.toString('utf8', slice.start, slice.end)
  const first = text[0]
  if (first === '"') return JSON.stringify(JSON.parse(text))
  return first === '-' || (first !== undefined && first >= '0' && first <= '9') ? exactNumber(text) : text
}
