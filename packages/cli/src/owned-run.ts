// A run that owns its processes: whatever ends it, nothing stays behind. What even SIGKILL of this process must end is the
// supervisor's matter (ops/src/reaper.ts).
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { WeirError } from '@weir/core'
import { isSame, startOf, type ProcessStart } from '@weir/ops'
import { exitCodes } from './exit-codes.ts'

export interface OwnedRun {
  readonly stateDir: string
  /** Aborts at the first SIGINT, SIGTERM or SIGHUP. */
  readonly signal: AbortSignal
  /** Registers an end; called last first, once, whatever happens. */
  onEnd(end: () => Promise<void>): void
}

const signals = { SIGINT: exitCodes.interrupted, SIGTERM: exitCodes.terminated, SIGHUP: exitCodes.terminated } as const

/** Runs `work` under a lock on its folder. Returns the exit code: `work`'s, or that of the signal that ended it. */
export async function ownedRun(stateDir: string, work: (run: OwnedRun) => Promise<number>): Promise<number> {
  const unlock = lock(stateDir)
  const ends: (() => Promise<void>)[] = []
  const abort = new AbortController()
  let interrupted: number | null = null
  const onSignal = (name: NodeJS.Signals): void => {
    const code = signals[name as keyof typeof signals]
    // The second signal does not wait; the reaper kills what still runs.
    if (interrupted !== null) process.exit(code)
    interrupted = code
    process.stderr.write(`\nweir: ${name}: stopping what was started (again to leave at once)\n`)
    abort.abort(new WeirError('prerequisite_missing', `interrupted by ${name}`))
  }
  for (const name of Object.keys(signals)) process.on(name, onSignal)
  try {
    const working = work({ stateDir, signal: abort.signal, onEnd: end => void ends.push(end) })
    const code = await settledSoon(working, abort.signal)
    return interrupted ?? code
  } catch (error) {
    if (interrupted === null) throw error
    return interrupted
  } finally {
    await endAll(ends)
    unlock()
    for (const name of Object.keys(signals)) process.off(name, onSignal)
  }
}

/** Waits for the work; after an abort it may take 20 s more, so that it starts nothing behind the back of what ends it. */
async function settledSoon(working: Promise<number>, signal: AbortSignal): Promise<number> {
  let timer: NodeJS.Timeout | undefined
  const tooLate = new Promise<never>((_, reject) => {
    const abort = (): void => {
      timer = setTimeout(() => reject(signal.reason as Error), 20_000)
    }
    signal.addEventListener('abort', abort, { once: true })
  })
  try {
    return await Promise.race([working, tooLate])
  } finally {
    clearTimeout(timer)
  }
}

/** All of them, last first, also when one fails; then throws the first failure. */
async function endAll(ends: (() => Promise<void>)[]): Promise<void> {
  const failures: unknown[] = []
  for (const end of ends.reverse()) {
    try {
      await end()
    } catch (error) {
      failures.push(error)
    }
  }
  if (failures.length > 0) throw failures[0]
}

/** One run per folder. A lock whose owner is gone is taken over. */
function lock(stateDir: string): () => void {
  mkdirSync(stateDir, { recursive: true })
  const file = join(stateDir, 'owner.json')
  const me = JSON.stringify(startOf(process.pid))
  try {
    writeFileSync(file, me, { flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    const owner = readOwner(file)
    if (owner !== null && isSame(owner)) {
      throw new WeirError(
        'prerequisite_missing',
        `another run works in ${stateDir} (process ${owner.pid}); wait for it or end it`,
      )
    }
    writeFileSync(file, me)
  }
  return () => rmSync(file, { force: true })
}

/** Null when the file holds nothing that names a process: its owner died while it wrote. */
function readOwner(file: string): ProcessStart | null {
  const text = readFileSync(file, 'utf8')
  return text.startsWith('{') && text.endsWith('}') ? (JSON.parse(text) as ProcessStart) : null
}
