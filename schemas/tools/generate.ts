// Writes src/generated/*.ts from avro/*.avsc: the schema as a constant and its TypeScript type.
// `--check` compares instead of writing and exits 1 when something differs.
import { mkdirSync, readdirSync, readFileSync, writeFileSync, existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

type Avro = string | Avro[] | AvroRecord | { type: 'array'; items: Avro }
type AvroRecord = { type: 'record'; name: string; doc: string; fields: AvroField[] }
type AvroField = { name: string; type: Avro; doc: string }

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const primitives: Record<string, string> = {
  string: 'string',
  bytes: 'Buffer',
  int: 'number',
  long: 'number',
  boolean: 'boolean',
  null: 'null',
}

function tsType(type: Avro, nested: AvroRecord[]): string {
  if (typeof type === 'string') return primitives[type] ?? type
  if (Array.isArray(type)) return type.map(t => tsType(t, nested)).join(' | ')
  if (type.type === 'array') return `readonly ${tsType(type.items, nested)}[]`
  nested.push(type)
  return type.name
}

function interfaceOf(record: AvroRecord): { text: string; nested: AvroRecord[] } {
  const nested: AvroRecord[] = []
  const lines = record.fields.map(f => `  /** ${f.doc} */\n  readonly ${f.name}: ${tsType(f.type, nested)}`)
  return { text: `/** ${record.doc} */\nexport interface ${record.name} {\n${lines.join('\n')}\n}\n`, nested }
}

function generate(file: string): string {
  const source = readFileSync(here(`../avro/${file}`), 'utf8')
  const schema = JSON.parse(source) as AvroRecord
  const pending = [schema]
  const out: string[] = []
  const nestedTexts: string[] = []
  for (let record = pending.shift(); record !== undefined; record = pending.shift()) {
    const { text, nested } = interfaceOf(record)
    if (record === schema) out.push(text)
    else nestedTexts.push(text.replace(`interface ${record.name}`, `interface ${schema.name}${record.name}`))
    pending.push(...nested)
  }
  let text = [...nestedTexts, ...out].join('\n')
  for (const name of nestedTexts.map(t => /interface (\w+)/.exec(t)?.[1] ?? '')) {
    const short = name.slice(schema.name.length)
    text = text.replace(new RegExp(`(: |readonly |\\| )${short}(?=[\\[\\n ])`, 'g'), `$1${name}`)
  }
  const constant = schema.name.charAt(0).toLowerCase() + schema.name.slice(1) + 'Schema'
  return `// Made from avro/${file} by tools/generate.ts; do not edit.\n\n${text}\nexport const ${constant} = ${JSON.stringify(schema)} as const\n`
}

const check = process.argv.includes('--check')
mkdirSync(here('../src/generated'), { recursive: true })
const stale: string[] = []
for (const file of readdirSync(here('../avro')).sort()) {
  const target = here(`../src/generated/${file.replace('.avsc', '.ts')}`)
  const text = generate(file)
  if (existsSync(target) && readFileSync(target, 'utf8') === text) continue
  if (check) stale.push(target)
  else writeFileSync(target, text)
}
if (stale.length > 0) {
  process.stderr.write(
    `these files differ from the schemas; run \`node schemas/tools/generate.ts\`:\n${stale.join('\n')}\n`,
  )
  process.exitCode = 1
}
