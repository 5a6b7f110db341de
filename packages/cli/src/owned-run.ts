// A run that owns its processes: whatever ends it, nothing stays behind.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { WeirError } from '@weir/core'
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
    // The second signal does not wait; orphans are found and ended by the next run.
    if (interrupted !== null) process.exit(code)
    interrupted = code
    process.stderr.write(`\nweir: ${name}: stopping what was started (again to leave at once)\n`)
    abort.abort(new WeirError('prerequisite_missing', `interrupted by ${name}`))
  }
  for (const name of Object.keys(signals)) process.on(name, onSignal)
  const aborted = new Promise<never>((_, reject) => {
    abort.signal.addEventListener('abort', () => reject(abort.signal.reason as Error), { once: true })
  })
  try {
    return await Promise.race([work({ stateDir, signal: abort.signal, onEnd: end => void ends.push(end) }), aborted])
  } catch (error) {
    if (interrupted === null) throw error
    return interrupted
  } finally {
    for (const end of ends.reverse()) await end()
    unlock()
    for (const name of Object.keys(signals)) process.off(name, onSignal)
  }
}

/** One run per folder. A lock whose owner is gone is taken over. */
function lock(stateDir: string): () => void {
  mkdirSync(stateDir, { recursive: true })
  const file = join(stateDir, 'owner.pid')
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    const owner = Number(readFileSync(file, 'utf8'))
    if (owner !== process.pid && isAlive(owner)) {
      throw new WeirError(
        'prerequisite_missing',
        `another run works in ${stateDir} (process ${owner}); wait for it or end it`,
      )
    }
    writeFileSync(file, String(process.pid))
  }
  return () => rmSync(file, { force: true })
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
