// Writes docs/configuration.md and docs/errors.md from the code. With --check: compares instead, and ends with code 1 when one
// of them is out of date.
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { type ErrorEntry, errorCatalogue } from '@weir/core'
import { z } from 'zod'
import { documentSchema } from '../src/configuration/document-schema.ts'
import { commonSettings, describeSettings, type SettingDescription } from '../src/index.ts'
import { describeFields, type FieldDescription } from './describe-schema.ts'
import { code, table } from './markdown.ts'

const root = new URL('../../../', import.meta.url)
const made = '<!-- Made from the code by `npm run docs -w packages/runtime`. Do not edit. -->'

const pages = [
  { name: 'docs/configuration.md', text: await configurationPage() },
  { name: 'docs/errors.md', text: errorsPage() },
]

if (process.argv.includes('--check')) await check()
else for (const page of pages) await writeFile(new URL(page.name, root), page.text)

async function check(): Promise<void> {
  for (const page of pages) {
    if ((await textOf(page.name)) === page.text) continue
    process.stderr.write(
      `${page.name} is out of date: run \`npm run docs -w packages/runtime\` and commit the result\n`,
    )
    process.exitCode = 1
  }
}

async function textOf(name: string): Promise<string | null> {
  try {
    return await readFile(new URL(name, root), 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
}

function errorsPage(): string {
  const entries = Object.entries<ErrorEntry>(errorCatalogue)
  const row = ([name, entry]: readonly [string, ErrorEntry]): readonly string[] => [
    code(name),
    ...(entry.status === 0 ? [] : [String(entry.status)]),
    entry.title,
    entry.remedy,
    entry.retriable ? 'yes' : 'no',
  ]
  const callers = entries.filter(([, entry]) => entry.status !== 0).map(row)
  const operators = entries.filter(([, entry]) => entry.status === 0).map(row)
  return `${made}

# Errors

Every error has a stable code. Branch on the code, never on the text.

## What callers see

An answer with one of these is a problem document (RFC 9457) with the code in \`code\`. It never holds SQL, host names or stacks; the
correlation id leads an operator to the log.

${table(['code', 'HTTP', 'meaning', 'what to do', 'retry helps'], callers)}

## What operators see

In logs, and on standard error when a process does not start.

${table(['code', 'meaning', 'what to do', 'retry helps'], operators)}
`
}

async function configurationPage(): Promise<string> {
  return `${made}

# Configuration

Two places: the environment says where a process finds its neighbours; \`weir.yaml\` says what Weir does, for whom. Both are read once
at start, checked as a whole, and every problem is reported at once, with what to do. \`weir config check\` does the same without
starting anything. The \`weir.yaml\` at the root of the repository is a commented example.

## weir.yaml

A name has 1 to 64 lower-case letters, digits and dashes. A path is a JSON Pointer (RFC 6901) into the body, for example
\`/data/object/id\`. A time is a whole number with \`s\`, \`m\`, \`h\` or \`d\`; a size one with \`B\`, \`KiB\` or \`MiB\`. Secrets stand elsewhere and
are referred to: \`{ env: NAME }\` or \`{ file: PATH }\`; a secret has at least 16 bytes, and published examples are refused.

${yamlSections()}
## Environment

An empty variable counts as not set. A secret is never shown, only whether it is set.

### All services

Each service reads those of these that it needs.

${settingsTable(describeSettings(z.object(commonSettings)))}
${await serviceSections()}`
}

function yamlSections(): string {
  const fields = describeFields(documentSchema)
  const sections = fields.filter(field => !field.path.includes('.'))
  return sections
    .map(section => {
      const below = fields.filter(field => field.path.startsWith(`${section.path}.`))
      const rows = below.map(field => fieldRow(field, `${section.path}.<name>.`))
      const list = rows.length === 0 ? '' : `\n${table(['setting', 'type', 'default', 'meaning'], rows)}\n`
      return `### ${section.path}\n\n${section.description}\n${list}`
    })
    .join('\n')
}

function fieldRow(field: FieldDescription, prefix: string): readonly string[] {
  const isInner = field.path.slice(prefix.length).includes('.')
  const fallback = field.defaultText ?? (field.required ? (isInner ? 'needed there' : 'required') : 'none')
  return [code(field.path.replace(prefix, '')), field.type, fallback, field.description]
}

function settingsTable(settings: readonly SettingDescription[]): string {
  const rows = settings.map(setting => [
    code(setting.name),
    setting.defaultText === null ? (setting.required ? 'required' : 'none') : code(setting.defaultText),
    setting.secret ? 'yes' : 'no',
    setting.description,
  ])
  return table(['variable', 'default', 'secret', 'meaning'], rows)
}

/** The services that exist; each exports `configSchema`. */
async function serviceSections(): Promise<string> {
  const names = (await readdir(new URL('services/', root))).toSorted()
  const sections: string[] = []
  for (const name of names) {
    const schema = await configSchemaOf(name)
    if (schema !== null) sections.push(serviceSection(name, describeSettings(schema)))
  }
  return sections.join('')
}

async function configSchemaOf(service: string): Promise<z.ZodType | null> {
  const entry = `services/${service}/src/index.ts`
  if ((await textOf(entry)) === null) return null
  const exported = (await import(new URL(entry, root).href)) as { readonly configSchema?: unknown }
  if (exported.configSchema instanceof z.ZodType) return exported.configSchema
  throw new Error(`${entry} exports no configSchema (a zod schema of its settings)`)
}

function serviceSection(name: string, settings: readonly SettingDescription[]): string {
  const isCommon = (setting: SettingDescription): boolean => setting.name in commonSettings
  const shared = settings.filter(isCommon).map(setting => code(setting.name))
  const own = settings.filter(setting => !isCommon(setting))
  const undescribed = own.find(setting => setting.description === '')
  if (undescribed) throw new Error(`services/${name}: ${undescribed.name} has no description`)
  const list = own.length === 0 ? '' : `\n${settingsTable(own)}\n`
  return `\n### ${name}\n\nOf the above: ${shared.join(', ')}.\n${list}`
}
