import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { WeirError } from '@weir/core'
import type { NativeContext } from './native.ts'
import { step } from './progress.ts'
import { answers, runCommand } from './run-command.ts'
import { accepts, waitUntil } from './wait.ts'

/** A Redis without persistence: it only makes things quick. Returns its URL. */
export async function startRedis(context: NativeContext): Promise<string> {
  const { supervisor, progress, signal, stateDir } = context
  await ensureServer(context)
  const port = await context.ports.take('redis')
  const folder = join(stateDir, 'redis')
  mkdirSync(folder, { recursive: true })
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
  supervisor.start({
    name: 'redis',
    command: 'redis-server',
    args: [...args, '--maxmemory-policy', 'noeviction', '--dir', folder],
  })
  await step(progress, `starting Redis on port ${port}`, () =>
    waitUntil(() => accepts(port), {
      what: 'Redis',
      withinMs: 20_000,
      givenUp: () => supervisor.ended('redis'),
      signal,
    }),
  )
  return `redis://127.0.0.1:${port}`
}

async function ensureServer({ progress, signal }: NativeContext): Promise<void> {
  if (await answers('redis-server', ['--version'])) return
  const isRoot = process.getuid?.() === 0
  if (isRoot && (await answers('apt-get', ['--version']))) {
    await step(progress, 'installing redis-server with apt-get', async () => {
      // The package would start a server of its own on the default port; this one is enough.
      const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
      await runCommand('apt-get', ['update', '-qq'], { env, signal })
      await runCommand('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'redis-server'], { env, signal })
    })
    return
  }
  throw new WeirError(
    'prerequisite_missing',
    'redis-server is not installed: install it (Debian: apt-get install redis-server; macOS: brew install redis), or set REDIS_URL',
  )
}
