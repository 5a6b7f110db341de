import { z } from 'zod'

/** One setting of weir.yaml as the documentation shows it. */
export interface FieldDescription {
  /** `sources.<name>.hmac.header`. */
  readonly path: string
  readonly type: string
  readonly required: boolean
  readonly defaultText: string | null
  readonly description: string
}

/** Every setting below a schema, parents before children. Throws for one without a description. */
export function describeFields(schema: z.ZodType, path = ''): readonly FieldDescription[] {
  const core = coreOf(schema)
  if (core instanceof z.ZodRecord) return describeFields(core.valueType as z.ZodType, `${path}.<name>`)
  if (core instanceof z.ZodArray) return describeFields(core.element as z.ZodType, `${path}[]`)
  if (core instanceof z.ZodUnion) return unionFields(core.options as readonly z.ZodType[], path)
  if (!(core instanceof z.ZodObject)) return []
  return Object.entries(core.shape as Record<string, z.ZodType>).flatMap(([name, field]) => {
    const own = `${path}${path === '' ? '' : '.'}${name}`
    return [describeField(field, own), ...describeFields(field, own)]
  })
}

/** Fields of all options; what several options share is shown once. */
function unionFields(options: readonly z.ZodType[], path: string): FieldDescription[] {
  const fields = options.flatMap(option => describeFields(option, path))
  const isFirst = (field: FieldDescription, i: number): boolean =>
    fields.findIndex(other => other.path === field.path && other.description === field.description) === i
  return fields.filter(isFirst)
}

function describeField(field: z.ZodType, path: string): FieldDescription {
  const layers = layersOf(field)
  const description = layers.find(layer => layer.description !== undefined)?.description
  if (description === undefined) throw new Error(`${path} has no description`)
  const type = typeOf(field)
  return {
    path,
    type,
    required: !field.safeParse(undefined).success,
    defaultText: defaultOf(layers, type),
    description,
  }
}

function typeOf(schema: z.ZodType): string {
  const title = layersOf(schema)
    .find(layer => layer.meta()?.title !== undefined)
    ?.meta()?.title
  if (title !== undefined) return title
  const core = coreOf(schema)
  if (core instanceof z.ZodEnum) return core.options.map(option => `\`${String(option)}\``).join(', ')
  if (core instanceof z.ZodLiteral) return [...core.values].map(value => `\`${String(value)}\``).join(', ')
  if (core instanceof z.ZodArray) return `list of ${typeOf(core.element as z.ZodType)}`
  if (core instanceof z.ZodTuple) return '`["*"]`'
  if (core instanceof z.ZodRecord) return 'map by name'
  if (core instanceof z.ZodUnion) return (core.options as readonly z.ZodType[]).map(typeOf).join(' or ')
  if (core instanceof z.ZodObject) return 'map'
  if (core instanceof z.ZodNumber) return 'number'
  return 'text'
}

function defaultOf(layers: readonly z.ZodType[], type: string): string | null {
  const layer = layers.find(candidate => candidate instanceof z.ZodDefault)
  if (!layer) return null
  const value: unknown = layer.def.defaultValue
  if (type === 'time') return timeText(Number(value))
  if (type === 'size') return sizeText(Number(value))
  if (value === '') return 'empty'
  if (Array.isArray(value)) return value.length === 0 ? 'empty' : JSON.stringify(value)
  return typeof value === 'string' || typeof value === 'number' ? String(value) : 'empty'
}

function timeText(seconds: number): string {
  for (const [unit, size] of [
    ['d', 86_400],
    ['h', 3_600],
    ['m', 60],
  ] as const) {
    if (seconds % size === 0) return `${seconds / size}${unit}`
  }
  return `${seconds}s`
}

function sizeText(bytes: number): string {
  return bytes % 1_048_576 === 0 ? `${bytes / 1_048_576}MiB` : `${bytes / 1_024}KiB`
}

/** The schema and all that it wraps, outermost first. */
function layersOf(schema: z.ZodType): readonly z.ZodType[] {
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodOptional) {
    return [schema, ...layersOf(schema.unwrap() as z.ZodType)]
  }
  return schema instanceof z.ZodPipe ? [schema, ...layersOf(schema.in as z.ZodType)] : [schema]
}

function coreOf(schema: z.ZodType): z.ZodType {
  return layersOf(schema).at(-1) ?? schema
}
