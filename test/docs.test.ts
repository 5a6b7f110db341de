import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'

const run = promisify(execFile)

describe('docs/configuration.md and docs/errors.md', () => {
  it('say what the code says', async () => {
    const generator = fileURLToPath(new URL('../packages/runtime/tools/generate-docs.ts', import.meta.url))
    // Rejects with the generator's message, which names the page and the command that renews it.
    await expect(run(process.execPath, [generator, '--check'])).resolves.toMatchObject({ stderr: '' })
  }, 30_000)
})
