// The checks of `weir check`, and test runs: each a program of its own.
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Reaper } from '@weir/ops'
import { checkout, stateRoot } from './paths.ts'

export interface Check {
  readonly name: string
  readonly command: readonly string[]
}

const bin = (name: string): string => join(checkout, 'node_modules', '.bin', name)
const node = (...args: string[]): string[] => [process.execPath, ...process.execArgv, ...args]

const checks: readonly Check[] = [
  { name: 'format', command: [bin('prettier'), '--check', '--log-level', 'warn', '.'] },
  { name: 'types', command: [bin('tsc'), '-p', 'tsconfig.json'] },
  { name: 'lint', command: [bin('oxlint'), '--type-aware', '--deny-warnings'] },
  {
    name: 'import rule',
    command: [
      bin('depcruise'),
      '--config',
      '.dependency-cruiser.cjs',
      'schemas',
      'packages',
      'services',
      'test',
      'bench',
      'ops',
    ],
  },
  { name: 'dead code', command: [bin('knip')] },
  { name: 'generated schemas', command: node('schemas/tools/generate.ts', '--check') },
  { name: 'unit tests', command: [...vitest('unit')] },
]

export interface CheckResult {
  readonly name: string
  readonly ok: boolean
  readonly seconds: number
  readonly output: string
}

export interface RunOptions {
  readonly signal: AbortSignal
  readonly env?: Readonly<Record<string, string>>
  /** Called with what it prints, as it prints it. Default: it is collected and shown when it fails. */
  readonly print?: (chunk: Buffer) => void
}

/** Runs all checks, as many at once as there are cores; calls `report` as each ends. */
export async function runChecks(report: (result: CheckResult) => void, options: RunOptions): Promise<boolean> {
  const waiting = [...checks]
  let ok = true
  const lane = async (): Promise<void> => {
    for (let check = waiting.shift(); check !== undefined; check = waiting.shift()) {
      options.signal.throwIfAborted()
      const result = await runCheck(check, options)
      ok = ok && result.ok
      report(result)
    }
  }
  await Promise.all(Array.from({ length: Math.min(4, availableParallelism()) }, lane))
  return ok
}

export async function runCheck(check: Check, options: RunOptions): Promise<CheckResult> {
  const startedAt = performance.now()
  const chunks: Buffer[] = []
  const print = options.print ?? ((chunk: Buffer): void => void chunks.push(chunk))
  const [command = '', ...args] = check.command
  const child = spawn(command, args, {
    cwd: checkout,
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own: it and all it starts end with this process, however that ends.
    detached: true,
  })
  const reaper = new Reaper()
  reaper.watch(child)
  const abort = (): void => endGroup(child)
  options.signal.addEventListener('abort', abort, { once: true })
  child.stdout.on('data', print)
  child.stderr.on('data', print)
  const ok = await new Promise<boolean>(resolve => {
    child.once('error', error => {
      print(Buffer.from(`${error.message}\n`))
      resolve(false)
    })
    child.once('close', code => resolve(code === 0))
  })
  options.signal.removeEventListener('abort', abort)
  reaper.release()
  const seconds = (performance.now() - startedAt) / 1000
  return { name: check.name, ok, seconds, output: Buffer.concat(chunks).toString('utf8') }
}

function endGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGTERM')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** A vitest run of one project that leaves its counts behind. */
export function vitest(project: string): readonly string[] {
  const reporter = fileURLToPath(new URL('count-reporter.ts', import.meta.url))
  return [bin('vitest'), 'run', '--project', project, '--reporter=default', `--reporter=${reporter}`]
}

export interface Counts {
  passed: number
  failed: number
  skipped: number
}

/** Where runs leave their counts; emptied by the call. */
export function countsFile(): string {
  mkdirSync(stateRoot, { recursive: true })
  const file = join(stateRoot, `test-counts-${process.pid}.jsonl`)
  rmSync(file, { force: true })
  return file
}

export function readCounts(file: string): Counts {
  const sum: Counts = { passed: 0, failed: 0, skipped: 0 }
  let text = ''
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  for (const line of text.split('\n').filter(Boolean)) {
    const counts = JSON.parse(line) as Counts & { pending: number }
    sum.passed += counts.passed
    sum.failed += counts.failed + counts.pending
    sum.skipped += counts.skipped
  }
  return sum
}
