import { readFile } from 'node:fs/promises'
import { WeirError, type WeirConfiguration } from '@weir/core'
import { LineCounter, parseDocument } from 'yaml'
import { deepFreeze } from '../settings.ts'
import { buildConfiguration } from './build-configuration.ts'
import { crossCheck } from './cross-checks.ts'
import { documentSchema } from './document-schema.ts'
import { configurationError, positionsOf } from './problems.ts'
import { schemaProblems } from './schema-problems.ts'
import { createSecretResolver, type SecretHolder, secretHolders } from './secrets.ts'

export interface LoadOptions {
  /**
   * Whose secrets and key hashes this process needs; those of others are not looked for and stay empty, so that a service can
   * run without them. Default: all.
   */
  readonly secretsOf?: readonly SecretHolder[]
}

/**
 * Reads and checks weir.yaml, and resolves the secrets it refers to. Throws one `config_invalid` that lists every problem with
 * file, line, setting, value and what to do. The result is frozen; secret values are not enumerable.
 */
export async function loadConfiguration(
  path: string,
  env: NodeJS.ProcessEnv,
  options: LoadOptions = {},
): Promise<WeirConfiguration> {
  return await parseConfiguration(await readText(path), { file: path, env, ...options })
}

/** What a check tells of a configuration. */
export interface ConfigurationSummary {
  readonly version: string
  /** Number of tenants, sources, clients, agents, routes, budgets and analysts. */
  readonly counts: Readonly<Record<Exclude<keyof WeirConfiguration, 'version'>, number>>
}

/** Checks weir.yaml like `loadConfiguration`, and tells what is in it. */
export async function checkConfiguration(
  path: string,
  env: NodeJS.ProcessEnv,
  options: LoadOptions = {},
): Promise<ConfigurationSummary> {
  const { version, ...lists } = await loadConfiguration(path, env, options)
  const counts = Object.entries(lists).map(([name, items]) => [name, items.length])
  return { version, counts: Object.fromEntries(counts) as ConfigurationSummary['counts'] }
}

/** The same for a text that is already read; `file` is only named in errors. */
export async function parseConfiguration(
  text: string,
  options: LoadOptions & { readonly file: string; readonly env: NodeJS.ProcessEnv },
): Promise<WeirConfiguration> {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
  if (document.errors.length > 0) {
    const found = document.errors.map(
      error => `  ${options.file}:${lines.linePos(error.pos[0]).line}: ${error.message}`,
    )
    throw new WeirError('config_invalid', `The configuration is not valid YAML:\n${found.join('\n')}`)
  }
  const positions = positionsOf(document, lines)
  const value: unknown = document.toJS({ maxAliasCount: 100 }) ?? {}
  const parsed = documentSchema.safeParse(value)
  if (!parsed.success) {
    throw configurationError(options.file, schemaProblems(documentSchema, parsed.error, value), positions)
  }
  const resolver = createSecretResolver(options.env, options.secretsOf ?? secretHolders)
  const configuration = await buildConfiguration(parsed.data, resolver)
  const problems = [...crossCheck(parsed.data), ...resolver.problems]
  if (problems.length > 0) throw configurationError(options.file, problems, positions)
  return deepFreeze(configuration)
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    throw new WeirError(
      'config_invalid',
      `The configuration file ${path} cannot be read (${code}). Create it, or set WEIR_CONFIG to its path.`,
      { cause: error, context: { path } },
    )
  }
}
