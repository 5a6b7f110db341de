import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'
import { readMigrations } from './migration-files.ts'

async function readFrom(files: Record<string, string>): Promise<readonly { name: string; safeForOldCode: boolean }[]> {
  const directory = await mkdtemp(join(tmpdir(), 'weir-migrations-'))
  try {
    for (const [name, sql] of Object.entries(files)) await writeFile(join(directory, name), sql)
    return await readMigrations(pathToFileURL(`${directory}/`))
  } finally {
    await rm(directory, { recursive: true })
  }
}

describe('the migrations of this program', () => {
  it('begin with what, why, locks and whether old code may go on', async () => {
    for (const { name, sql } of await readMigrations()) {
      const header = sql.slice(0, sql.indexOf('\n\n'))
      expect([name, header]).toEqual([
        name,
        expect.stringMatching(/^-- .+\n-- why: .+\n(-- .*\n)*-- locks: .+\n(-- .*\n)*-- old code: (safe|unsafe)\b/),
      ])
    }
  })

  it('are numbered without gaps', async () => {
    const versions = (await readMigrations()).map(file => file.version)
    expect(versions).toEqual(versions.map((_, i) => i + 1))
  })
})

describe('readMigrations', () => {
  it('takes a migration as unsafe for old code unless it says otherwise', async () => {
    const files = await readFrom({ '000002_b.sql': '-- old code: safe\n', '000001_a.sql': '-- b', 'notes.txt': '' })
    expect(files.map(file => [file.name, file.safeForOldCode])).toEqual([
      ['000001_a.sql', false],
      ['000002_b.sql', true],
    ])
  })

  it('refuses two files with one number, and names that are no migration', async () => {
    await expect(readFrom({ '000001_a.sql': '', '000001_b.sql': '' })).rejects.toThrow('000001_a.sql and 000001_b.sql')
    await expect(readFrom({ '1_a.sql': '' })).rejects.toThrow('1_a.sql is not named like a migration')
  })
})
