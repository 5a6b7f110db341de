import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { WeirError } from '@weir/core'

export interface MigrationFile {
  readonly version: number
  /** File name, `000001_owners.sql`. */
  readonly name: string
  readonly sql: string
  /** SHA-256 of the file with line ends as `\n`, hex. */
  readonly sha256: string
  /** Whether programs that do not know this migration may go on using the database: header line `-- old code: safe`. */
  readonly safeForOldCode: boolean
}

const ownDirectory = new URL('../migrations/', import.meta.url)

/** All migrations of this program, by version. */
export async function readMigrations(directory: URL = ownDirectory): Promise<readonly MigrationFile[]> {
  const names = (await readdir(directory)).filter(name => name.endsWith('.sql')).toSorted()
  const files: MigrationFile[] = []
  for (const name of names) {
    const file = await readMigration(directory, name)
    const last = files.at(-1)
    if (last?.version === file.version) {
      throw new WeirError('config_invalid', `${last.name} and ${name} have the same number: give one of them the next`)
    }
    files.push(file)
  }
  return files
}

async function readMigration(directory: URL, name: string): Promise<MigrationFile> {
  const match = /^(\d{6})_[a-z0-9_]+\.sql$/.exec(name)
  if (!match) {
    throw new WeirError('config_invalid', `${name} is not named like a migration: NNNNNN_lower_case.sql`)
  }
  const sql = (await readFile(new URL(name, directory), 'utf8')).replaceAll('\r\n', '\n')
  return {
    version: Number(match[1]),
    name,
    sql,
    sha256: createHash('sha256').update(sql).digest('hex'),
    safeForOldCode: /^-- old code: safe\b/im.test(sql),
  }
}
