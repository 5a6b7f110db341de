import { WeirError } from '@weir/core'

const hidden = '[redacted]'

/** Field names whose values are never logged, at any depth, compared without case, dash and underscore. */
const sensitiveName =
  /authorization|cookie|signature|secret|password|token$|apikey|^bearer$|credential|keysha256|^(raw)?body$|^payload$|^(database|redis|admin)url$/
const maxDepth = 8
const maxItems = 100

/** Fields of a log line, safe to write: sensitive ones and bytes replaced, errors spelled out, passwords in URLs hidden. */
export function redactFields(fields: object): Record<string, unknown> {
  if (fields instanceof Error) return { err: redactError(fields, 0, new Set([fields])) }
  const safe: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(fields)) safe[name] = redactField(name, value, 0, new Set([fields]))
  return safe
}

/** `scheme://user:password@host` with the password hidden, anywhere in a text. */
export function hideUrlPasswords(text: string): string {
  return text.includes('://') ? text.replaceAll(/([a-z][a-z0-9+.-]*:\/\/[^\s/:@]*):[^\s@]*@/gi, `$1:${hidden}@`) : text
}

function redactField(name: string, value: unknown, depth: number, above: ReadonlySet<object>): unknown {
  return isSensitive(name) && !saysOnlyWhether(value) ? hidden : redactAt(value, depth + 1, above)
}

function isSensitive(name: string): boolean {
  return sensitiveName.test(name.replaceAll(/[-_]/g, '').toLowerCase())
}

/** Whether a secret is there may be said; settingsForLog does it in words. */
function saysOnlyWhether(value: unknown): boolean {
  return value === null || value === undefined || typeof value === 'boolean' || value === 'set' || value === 'not set'
}

function redactAt(value: unknown, depth: number, above: ReadonlySet<object>): unknown {
  if (typeof value === 'string') return hideUrlPasswords(value)
  if (typeof value === 'bigint') return value.toString()
  if (typeof value === 'function' || typeof value === 'symbol') return `[${typeof value}]`
  if (typeof value !== 'object' || value === null) return value
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'invalid date' : value.toISOString()
  if (value instanceof URL) return hideUrlPasswords(value.href)
  if (above.has(value)) return '[circular]'
  if (depth >= maxDepth) return '[deep]'
  const within = new Set([...above, value])
  if (value instanceof Error) return redactError(value, depth, within)
  if (Array.isArray(value)) return redactItems(value, depth, within)
  if (value instanceof Map) return redactItems([...value.entries()], depth, within)
  if (value instanceof Set) return redactItems([...value], depth, within)
  return redactObject(value, depth, within)
}

function redactObject(value: object, depth: number, above: ReadonlySet<object>): Record<string, unknown> {
  const entries = Object.entries(value).slice(0, maxItems)
  return Object.fromEntries(entries.map(([name, item]) => [name, redactField(name, item, depth, above)]))
}

function redactItems(items: readonly unknown[], depth: number, above: ReadonlySet<object>): unknown[] {
  const safe = items.slice(0, maxItems).map(item => {
    // Headers often come as pairs of name and value.
    const isSensitivePair = Array.isArray(item) && typeof item[0] === 'string' && isSensitive(item[0])
    return isSensitivePair ? [item[0], hidden] : redactAt(item, depth + 1, above)
  })
  if (items.length > maxItems) safe.push(`[${items.length - maxItems} more]`)
  return safe
}

function redactError(error: Error, depth: number, above: ReadonlySet<object>): Record<string, unknown> {
  const code = 'code' in error && (typeof error.code === 'string' || typeof error.code === 'number') ? error.code : null
  return {
    type: error.name,
    message: hideUrlPasswords(error.message),
    ...(code === null ? {} : { code }),
    ...(error instanceof WeirError ? { context: redactAt(error.context, depth + 1, above) } : {}),
    stack: hideUrlPasswords(error.stack ?? ''),
    ...(error.cause === undefined ? {} : { cause: redactAt(error.cause, depth + 1, above) }),
    ...(error instanceof AggregateError ? { errors: redactItems(error.errors, depth, above) } : {}),
  }
}
