import { execFile } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, describe, expect, it } from 'vitest'

const run = promisify(execFile)
const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '')
const written: string[] = []

afterEach(() => {
  for (const file of written.splice(0)) rmSync(file)
})

/** Writes a file with one import and lets the rule judge that file's folder. */
async function judge(file: string, specifier: string): Promise<{ readonly refused: boolean; readonly text: string }> {
  const path = join(root, file)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, `import '${specifier}'\n`)
  written.push(path)
  const args = ['--config', '.dependency-cruiser.cjs', '--output-type', 'err', file]
  try {
    const { stdout } = await run(join(root, 'node_modules', '.bin', 'depcruise'), args, { cwd: root })
    return { refused: false, text: stdout }
  } catch (error) {
    return { refused: true, text: String((error as { stdout?: string }).stdout) }
  }
}

// An integration test because it writes files into the tree: the checks, which run at once, must not see them.
describe('the import rule', () => {
  it.each([
    ['a service importing another by name', 'services/dedup/src/zz-bad.ts', '@weir/policy'],
    ['a service importing another by path', 'services/dedup/src/adapters/zz-bad.ts', '../../../policy/src/index.ts'],
    ['domain code importing a package', 'services/dedup/src/domain/zz-bad.ts', 'pino'],
    ['domain code importing an adapter', 'services/dedup/src/domain/zz-bad.ts', '../adapters/codec.ts'],
    ['domain code importing node:fs', 'services/policy/src/domain/zz-bad.ts', 'node:fs'],
    ['core importing packages/kafka', 'packages/core/src/zz-bad.ts', '@weir/kafka'],
    ['packages/kafka importing packages/postgres', 'packages/kafka/src/zz-bad.ts', '../../postgres/src/index.ts'],
    ['schemas importing core', 'schemas/src/zz-bad.ts', '../../packages/core/src/index.ts'],
    ['a service importing kafkajs', 'services/ingest/src/adapters/zz-bad.ts', 'kafkajs'],
    ['a service importing pg', 'services/ingest/src/adapters/zz-bad.ts', 'pg'],
    [
      'a deep import into a package',
      'services/dedup/src/adapters/zz-bad.ts',
      '../../../../packages/kafka/src/runner/take-over.ts',
    ],
  ])('refuses %s', async (_, file, specifier) => {
    const { refused, text } = await judge(file, specifier)
    expect({ refused, text }).toMatchObject({ refused: true, text: expect.stringContaining('zz-bad.ts') as string })
  })

  it('accepts what is allowed: an adapter may import a package’s entry', async () => {
    expect((await judge('services/dedup/src/adapters/zz-good.ts', '@weir/kafka')).refused).toBe(false)
  })
})
