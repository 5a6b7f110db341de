import { readFileSync } from 'node:fs'
import { runCommand } from '@weir/ops'

/** CPU time used by a process and, for Postgres, its children, in seconds. Linux only: /proc. */
export class CpuMeter {
  readonly #pids: ReadonlyMap<string, readonly number[]>

  private constructor(pids: ReadonlyMap<string, readonly number[]>) {
    this.#pids = pids
  }

  /** One entry per pid file `NAME.pid` in the folders. */
  static fromPidFiles(files: readonly { readonly name: string; readonly file: string }[]): CpuMeter {
    return new CpuMeter(
      new Map(files.map(({ name, file }) => [name, [(JSON.parse(readFileSync(file, 'utf8')) as { pid: number }).pid]])),
    )
  }

  seconds(): Map<string, number> {
    return new Map(
      [...this.#pids].map(([name, pids]) => [name, pids.reduce((sum, pid) => sum + treeTicks(pid), 0) / 100]),
    )
  }
}

/** utime + stime of the process, of children it has waited for, and of children that live. */
function treeTicks(pid: number): number {
  const own = statOf(pid)
  if (own === null) return 0
  return own.ticks + childrenOf(pid).reduce((sum, child) => sum + treeTicks(child), 0)
}

function statOf(pid: number): { readonly ticks: number } | null {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
    const [utime, stime, cutime, cstime] = [fields[11], fields[12], fields[13], fields[14]].map(Number)
    return { ticks: (utime ?? 0) + (stime ?? 0) + (cutime ?? 0) + (cstime ?? 0) }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return text.split(' ').filter(Boolean).map(Number)
}

/** What a figure was measured on. */
export async function machine(): Promise<Record<string, string>> {
  const model = /model name\s*: (.*)/.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1] ?? 'unknown'
  const cores = String(readFileSync('/proc/cpuinfo', 'utf8').match(/^processor/gm)?.length ?? 0)
  const commit = (await runCommand('git', ['rev-parse', '--short', 'HEAD'])).trim()
  return { model, cores, commit, node: process.version }
}
