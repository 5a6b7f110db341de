// Checks that bytes can be a value of an Avro schema before avsc reads them. avsc believes the counts in the bytes: an array that
// claims 2^50 items makes it loop (and allocate) for ever, so one record could stop a partition.

export type AvroSchema =
  | string
  | readonly AvroSchema[]
  | {
      readonly type: string | AvroSchema
      readonly name?: string
      readonly namespace?: string
      readonly fields?: readonly { readonly type: AvroSchema }[]
      readonly items?: AvroSchema
      readonly values?: AvroSchema
      readonly size?: number
    }

/** Null when the bytes fit the schema, else what does not. */
export type BoundsCheck = (bytes: Buffer, start: number) => string | null

type Step = (cursor: Cursor) => void

class OutOfBounds extends Error {}

const maxDepth = 32

class Cursor {
  readonly bytes: Buffer
  position: number
  depth = 0
  /** Even items of no bytes may not come more often than there are bytes. */
  itemsLeft: number

  constructor(bytes: Buffer, position: number) {
    this.bytes = bytes
    this.position = position
    this.itemsLeft = bytes.length
  }

  /** Zig-zag varint; inexact above 2^53, where it is out of any bounds. */
  long(): number {
    let value = 0
    let scale = 1
    for (let i = 0; i < 10; i++) {
      const byte = this.bytes[this.position++]
      if (byte === undefined) throw new OutOfBounds('it ends inside a number')
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value % 2 === 0 ? value / 2 : -(value + 1) / 2
      scale *= 128
    }
    throw new OutOfBounds('a number has more than 10 bytes')
  }

  skip(length: number): void {
    if (length < 0 || length > this.bytes.length - this.position) {
      throw new OutOfBounds('a length points outside of it')
    }
    this.position += length
  }
}

const primitives: Readonly<Record<string, Step>> = {
  null: () => undefined,
  boolean: cursor => cursor.skip(1),
  int: cursor => void cursor.long(),
  long: cursor => void cursor.long(),
  enum: cursor => void cursor.long(),
  float: cursor => cursor.skip(4),
  double: cursor => cursor.skip(8),
  bytes: cursor => cursor.skip(cursor.long()),
  string: cursor => cursor.skip(cursor.long()),
}

/** Throws when the schema names a type that is not defined in it. */
export function boundsCheck(schema: AvroSchema): BoundsCheck {
  const step = compile(schema, new Map(), '')
  return (bytes, start) => {
    const cursor = new Cursor(bytes, start)
    try {
      step(cursor)
      return cursor.position === bytes.length ? null : 'there are bytes behind the value'
    } catch (error) {
      if (error instanceof OutOfBounds) return error.message
      throw error
    }
  }
}

function compile(schema: AvroSchema, named: Map<string, Step>, namespace: string): Step {
  if (typeof schema === 'string') return reference(schema, named, namespace)
  if (isUnion(schema)) return union(schema.map(branch => compile(branch, named, namespace)))
  const { type } = schema
  if (typeof type !== 'string') return compile(type, named, namespace)
  switch (type) {
    case 'record':
    case 'error':
      return record(schema, named, namespace)
    case 'array':
      return blocks(compile(schema.items ?? 'null', named, namespace))
    case 'map': {
      const value = compile(schema.values ?? 'null', named, namespace)
      return blocks(cursor => {
        cursor.skip(cursor.long())
        value(cursor)
      })
    }
    case 'fixed':
      return define(schema, named, namespace, cursor => cursor.skip(schema.size ?? 0))
    case 'enum':
      return define(schema, named, namespace, primitives['enum'] ?? (() => undefined))
    default:
      return reference(type, named, namespace)
  }
}

const isUnion = (schema: AvroSchema): schema is readonly AvroSchema[] => Array.isArray(schema)

function reference(name: string, named: Map<string, Step>, namespace: string): Step {
  const primitive = primitives[name]
  if (primitive && name !== 'enum') return primitive
  const full = name.includes('.') || namespace === '' ? name : `${namespace}.${name}`
  const step = named.get(full) ?? named.get(name)
  if (!step) throw new Error(`the schema does not define ${name}`)
  return step
}

type Named = Exclude<AvroSchema, string | readonly AvroSchema[]>

function fullName(schema: Named, namespace: string): string {
  const name = schema.name ?? ''
  if (name.includes('.')) return name
  const space = schema.namespace ?? namespace
  return space === '' ? name : `${space}.${name}`
}

function define(schema: Named, named: Map<string, Step>, namespace: string, step: Step): Step {
  named.set(fullName(schema, namespace), step)
  return step
}

function record(schema: Named, named: Map<string, Step>, namespace: string): Step {
  const fields: Step[] = []
  const step = define(schema, named, namespace, cursor => {
    if (++cursor.depth > maxDepth) throw new OutOfBounds(`it is nested deeper than ${maxDepth}`)
    for (const field of fields) field(cursor)
    cursor.depth--
  })
  const full = fullName(schema, namespace)
  const inner = full.slice(0, Math.max(0, full.lastIndexOf('.')))
  for (const field of schema.fields ?? []) fields.push(compile(field.type, named, inner))
  return step
}

function union(branches: readonly Step[]): Step {
  return cursor => {
    const branch = branches[cursor.long()]
    if (!branch) throw new OutOfBounds('it names a branch that its union does not have')
    branch(cursor)
  }
}

function blocks(item: Step): Step {
  return cursor => {
    for (let count = cursor.long(); count !== 0; count = cursor.long()) {
      // A negative count is followed by the size of the block.
      if (count < 0 && cursor.long() < 0) throw new OutOfBounds('a block has a negative size')
      cursor.itemsLeft -= Math.abs(count)
      if (cursor.itemsLeft < 0) throw new OutOfBounds('it claims more items than it has bytes')
      for (let left = Math.abs(count); left > 0; left--) item(cursor)
    }
  }
}
