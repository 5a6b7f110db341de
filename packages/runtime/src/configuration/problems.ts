import { WeirError } from '@weir/core'
import { type Document, isMap, isScalar, isSeq, type LineCounter } from 'yaml'

export type ConfigPath = readonly (string | number)[]

/** One thing wrong with the configuration. */
export interface Problem {
  readonly path: ConfigPath
  /** What is wrong, with the value it has, and what to do; no secret. */
  readonly message: string
}

/** Where things stand in the file. */
export interface Positions {
  lineOf(path: ConfigPath): number
}

export function positionsOf(document: Document, lines: LineCounter): Positions {
  return { lineOf: path => lines.linePos(offsetOf(document, path)).line }
}

/** Offset of the deepest part of the path that exists: of a map's entry the key, else the item. */
function offsetOf(document: Document, path: ConfigPath): number {
  let node: unknown = document.contents
  let offset = startOf(node) ?? 0
  for (const step of path) {
    if (isMap(node)) {
      const pair = node.items.find(item => (isScalar(item.key) ? item.key.value : item.key) === step)
      if (!pair) return offset
      offset = startOf(pair.key) ?? offset
      node = pair.value
    } else if (isSeq(node) && typeof step === 'number') {
      node = node.items[step]
      offset = startOf(node) ?? offset
    } else return offset
  }
  return offset
}

function startOf(node: unknown): number | null {
  if (typeof node !== 'object' || node === null || !('range' in node)) return null
  const range: unknown = node.range
  return Array.isArray(range) && typeof range[0] === 'number' ? range[0] : null
}

/** `sources.github.secrets[0]`. */
function pathText(path: ConfigPath): string {
  let text = ''
  for (const step of path) text += typeof step === 'number' ? `[${step}]` : `${text === '' ? '' : '.'}${step}`
  return text
}

/** One error that lists all problems in the order of the file. */
export function configurationError(file: string, problems: readonly Problem[], positions: Positions): WeirError {
  const lines = problems
    .map(problem => ({ line: positions.lineOf(problem.path), ...problem }))
    .toSorted((a, b) => a.line - b.line)
    .map(({ line, path, message }) => `  ${file}:${line}: ${path.length === 0 ? '' : `${pathText(path)}: `}${message}`)
  const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`
  return new WeirError('config_invalid', `The configuration has ${count}:\n${[...new Set(lines)].join('\n')}`, {
    context: { file, problems: problems.length },
  })
}
