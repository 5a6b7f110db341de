// Which process a pid means: pids are used again, a pid with its start time is not.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'

export interface ProcessStart {
  readonly pid: number
  /** As the system tells it: on Linux the boot and the ticks since then, elsewhere the time by `ps`. */
  readonly startedAt: string
}

/** A live process, or null when there is none of that pid or only its zombie. */
export function startOf(pid: number): ProcessStart | null {
  const startedAt = existsSync('/proc/self/stat') ? fromProc(pid) : fromPs(pid)
  return startedAt === null ? null : { pid, startedAt }
}

/** Whether that very process still lives. */
export function isSame(known: ProcessStart): boolean {
  return known.startedAt !== '' && startOf(known.pid)?.startedAt === known.startedAt
}

function fromProc(pid: number): string | null {
  let stat: string
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ESRCH') return null
    throw error
  }
  // The name comes second, in brackets, and may hold anything; the state is the first field behind it, the start the twentieth.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  if (fields[0] === 'Z' || fields[0] === 'X') return null
  return `${bootId()} ${fields[19] ?? ''}`
}

function bootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
}

function fromPs(pid: number): string | null {
  try {
    const line = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim()
    const [state = '', ...start] = line.split(/\s+/)
    return line === '' || state.startsWith('Z') ? null : start.join(' ')
  } catch (error) {
    // ps ends with 1 when there is no such process.
    if ((error as { readonly status?: number }).status === 1) return null
    throw error
  }
}
