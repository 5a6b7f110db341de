import { z } from 'zod'
import { didYouMean } from './near-miss.ts'
import type { ConfigPath, Problem } from './problems.ts'

/** What a failed parse of the document means, one problem per fault, with the value as written. */
export function schemaProblems(schema: z.ZodType, error: z.ZodError, value: unknown): readonly Problem[] {
  return error.issues.flatMap(issue => issueProblems(schema, issue, value))
}

function issueProblems(schema: z.ZodType, issue: z.core.$ZodIssue, value: unknown): readonly Problem[] {
  const path = issue.path.filter(step => typeof step !== 'symbol')
  if (issue.code === 'unrecognized_keys') {
    const known = keysAt(schema, path)
    return issue.keys.map(key => ({
      path: [...path, key],
      message: `there is no such setting.${didYouMean(key, known)} Known here: ${known.join(', ')}`,
    }))
  }
  if (issue.code === 'invalid_union') return [unionProblem(schema, issue, path, value)]
  if (issue.code === 'invalid_key') {
    const reason = issue.issues[0]?.message ?? 'not allowed'
    return [{ path, message: `the name "${String(path.at(-1))}" is not allowed: ${reason}` }]
  }
  const actual = valueAt(value, path)
  if (actual === undefined) return [{ path, message: `is missing.${purposeAt(schema, path)}` }]
  return [{ path, message: `${shown(actual)}: ${sentence(issue)}${purposeAt(schema, path)}` }]
}

function unionProblem(
  schema: z.ZodType,
  issue: z.core.$ZodIssueInvalidUnion,
  path: ConfigPath,
  value: unknown,
): Problem {
  const actual = valueAt(value, path)
  const about = actual === undefined ? 'is missing.' : `${shown(actual)}: not one of the allowed forms.`
  const options = 'options' in issue && Array.isArray(issue.options) ? ` Allowed: ${issue.options.join(', ')}.` : ''
  return { path, message: `${about}${options}${purposeAt(schema, path)}` }
}

function sentence(issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_value') return `one of ${issue.values.map(String).join(', ')} is needed.`
  if (issue.code === 'invalid_type') return `${issue.expected} is needed.`
  return issue.message.endsWith('.') ? issue.message : `${issue.message}.`
}

function purposeAt(schema: z.ZodType, path: ConfigPath): string {
  const layers = schemasAt(schema, path).flatMap(unwrapAll)
  const description = layers.find(layer => layer.description !== undefined)?.description
  return description === undefined ? '' : ` ${description}`
}

/** The value as written, short. Values in weir.yaml are no secrets (those are references), but a misplaced one could be: text after `secrets` is not shown. */
function shown(value: unknown): string {
  if (value === null) return 'empty'
  if (typeof value === 'string') return value.length > 60 ? `"${value.slice(0, 57)}..."` : `"${value}"`
  if (Array.isArray(value)) return `a list of ${value.length}`
  return typeof value === 'object' ? 'a map' : String(value as number | boolean)
}

function valueAt(value: unknown, path: ConfigPath): unknown {
  let current = value
  for (const step of path) {
    if (typeof current !== 'object' || current === null) return undefined
    current = (current as Record<string | number, unknown>)[step]
  }
  return current
}

function keysAt(schema: z.ZodType, path: ConfigPath): readonly string[] {
  const shapes = schemasAt(schema, path)
    .flatMap(unwrapAll)
    .filter(layer => layer instanceof z.ZodObject)
  return [...new Set(shapes.flatMap(layer => Object.keys(layer.shape)))]
}

function schemasAt(schema: z.ZodType, path: ConfigPath): readonly z.ZodType[] {
  let current: readonly z.ZodType[] = [schema]
  for (const step of path) current = current.flatMap(unwrapAll).flatMap(layer => childrenOf(layer, step))
  return current
}

function childrenOf(schema: z.ZodType, step: string | number): readonly z.ZodType[] {
  if (schema instanceof z.ZodObject) {
    const child = (schema.shape as Record<string, z.ZodType>)[step]
    return child ? [child] : []
  }
  if (schema instanceof z.ZodRecord) return [schema.valueType as z.ZodType]
  return schema instanceof z.ZodArray ? [schema.element as z.ZodType] : []
}

/** The schema itself and what it wraps. */
function unwrapAll(schema: z.ZodType): readonly z.ZodType[] {
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodOptional) {
    return [schema, ...unwrapAll(schema.unwrap() as z.ZodType)]
  }
  if (schema instanceof z.ZodPipe) return [schema, ...unwrapAll(schema.in as z.ZodType)]
  if (schema instanceof z.ZodUnion) return [schema, ...(schema.options as readonly z.ZodType[]).flatMap(unwrapAll)]
  return [schema]
}
