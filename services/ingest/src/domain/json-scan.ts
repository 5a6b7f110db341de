// Finds the exact bytes of parts of a JSON text, so that they can be passed on without being written anew: numbers beyond
// 2^53, key order and spelling stay as sent. The bytes must have passed JSON.parse; nothing is checked again here.

/** Part of a byte array: from `start` up to, not including, `end`. */
export interface Slice {
  readonly start: number
  readonly end: number
}

export interface Member {
  /** The name with its quotes. */
  readonly name: Slice
  readonly value: Slice
}

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const openObject = 0x7b
const closeObject = 0x7d
const openArray = 0x5b
const closeArray = 0x5d

/** The value a whole JSON text holds, without white space and byte order mark around it. */
export function rootSlice(bytes: Buffer): Slice {
  const start = skipSpace(bytes, bytes[0] === 0xef ? 3 : 0)
  return { start, end: valueEnd(bytes, start) }
}

export function isObject(bytes: Buffer, slice: Slice): boolean {
  return bytes[slice.start] === openObject
}

export function isArray(bytes: Buffer, slice: Slice): boolean {
  return bytes[slice.start] === openArray
}

/** All members of an object, in the order they stand; a repeated name comes again. */
export function membersOf(bytes: Buffer, object: Slice): Member[] {
  const members: Member[] = []
  let at = skipSpace(bytes, object.start + 1)
  while (bytes[at] !== closeObject && at < object.end) {
    const name = { start: at, end: valueEnd(bytes, at) }
    const start = skipSpace(bytes, skipSpace(bytes, name.end) + 1)
    const value = { start, end: valueEnd(bytes, start) }
    members.push({ name, value })
    at = skipSpace(bytes, value.end)
    if (bytes[at] === comma) at = skipSpace(bytes, at + 1)
  }
  return members
}

/** All elements of an array. */
export function elementsOf(bytes: Buffer, array: Slice): Slice[] {
  const elements: Slice[] = []
  let start = skipSpace(bytes, array.start + 1)
  while (bytes[start] !== closeArray && start < array.end) {
    const element = { start, end: valueEnd(bytes, start) }
    elements.push(element)
    start = skipSpace(bytes, element.end)
    if (bytes[start] === comma) start = skipSpace(bytes, start + 1)
  }
  return elements
}

/** The value of a member; of a repeated name the last one, as JSON.parse has it. */
export function memberOf(bytes: Buffer, object: Slice, name: string): Slice | null {
  let found: Slice | null = null
  for (const member of membersOf(bytes, object)) {
    if (nameOf(bytes, member) === name) found = member.value
  }
  return found
}

/** A member's name as text, escapes resolved. */
export function nameOf(bytes: Buffer, member: Member): string {
  const { start, end } = member.name
  const escaped = bytes.subarray(start, end).includes(backslash)
  return escaped
    ? (JSON.parse(bytes.toString('utf8', start, end)) as string)
    : bytes.toString('utf8', start + 1, end - 1)
}

/** Follows pointer tokens from `from` down; `null` when there is nothing. */
export function sliceAt(bytes: Buffer, from: Slice, tokens: readonly string[]): Slice | null {
  let at: Slice | null = from
  for (const token of tokens) {
    if (isObject(bytes, at)) at = memberOf(bytes, at, token)
    else if (isArray(bytes, at) && isIndex(token)) at = elementsOf(bytes, at)[Number(token)] ?? null
    else return null
    if (at === null) return null
  }
  return at
}

/** Array index as RFC 6901 writes it: no sign, no leading zero. */
export function isIndex(token: string): boolean {
  return /^(0|[1-9]\d{0,9})$/.test(token)
}

function skipSpace(bytes: Buffer, from: number): number {
  let at = from
  for (;;) {
    const c = bytes[at]
    if (c !== 0x20 && c !== 0x0a && c !== 0x0d && c !== 0x09) return at
    at++
  }
}

/** Index after the value that begins at `start`. */
function valueEnd(bytes: Buffer, start: number): number {
  const first = bytes[start]
  if (first === quote) return stringEnd(bytes, start)
  if (first === openObject || first === openArray) return containerEnd(bytes, start)
  let at = start
  while (at < bytes.length && !endsScalar(bytes[at])) at++
  return at
}

function stringEnd(bytes: Buffer, start: number): number {
  let at = start + 1
  while (at < bytes.length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1
  return at + 1
}

function containerEnd(bytes: Buffer, start: number): number {
  let depth = 0
  let at = start
  while (at < bytes.length) {
    const c = bytes[at]
    if (c === quote) {
      at = stringEnd(bytes, at)
      continue
    }
    if (c === openObject || c === openArray) depth++
    else if (c === closeObject || c === closeArray) depth--
    at++
    if (depth === 0) return at
  }
  return at
}

function endsScalar(c: number | undefined): boolean {
  return c === comma || c === closeObject || c === closeArray || c === 0x20 || c === 0x0a || c === 0x0d || c === 0x09
}
