// Child processes with logs, pid files and a bounded end. A pid file names the process by pid and start time, so that another
// program with the same pid is never touched.
import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { WeirError } from '@weir/core'
import { waitUntil } from './wait.ts'

export interface ProcessSpec {
  readonly name: string
  readonly command: string
  readonly args: readonly string[]
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  /** Run as this user (Postgres refuses to run as root). */
  readonly user?: { readonly uid: number; readonly gid: number }
  /** Signal that asks for an orderly end. Default SIGTERM. */
  readonly stopSignal?: NodeJS.Signals
  /** How long it may take to end before it is killed, milliseconds. Default 15,000. */
  readonly stopWithinMs?: number
}

interface PidFile {
  readonly pid: number
  readonly startTime: string
  readonly stopSignal: NodeJS.Signals
}

export class Supervisor {
  readonly #stateDir: string
  readonly #children = new Map<string, { readonly spec: ProcessSpec; readonly child: ChildProcess }>()

  constructor(stateDir: string) {
    this.#stateDir = stateDir
    mkdirSync(join(stateDir, 'run'), { recursive: true })
    mkdirSync(join(stateDir, 'logs'), { recursive: true })
  }

  logFile(name: string): string {
    return join(this.#stateDir, 'logs', `${name}.log`)
  }

  /** Starts a process; it survives this one only if nobody calls `stop`. */
  start(spec: ProcessSpec): void {
    const log = openSync(this.logFile(spec.name), 'a')
    const child = spawn(spec.command, [...spec.args], {
      ...(spec.cwd === undefined ? {} : { cwd: spec.cwd }),
      env: { ...process.env, ...spec.env },
      // Its own group: a Ctrl-C in the terminal reaches only this program, which then stops its children in order.
      detached: true,
      stdio: ['ignore', log, log],
      ...spec.user,
    })
    closeSync(log)
    child.once('error', () => undefined)
    child.unref()
    this.#children.set(spec.name, { spec, child })
    if (child.pid === undefined) return
    const file: PidFile = {
      pid: child.pid,
      startTime: startTimeOf(child.pid) ?? '',
      stopSignal: spec.stopSignal ?? 'SIGTERM',
    }
    writeFileSync(this.#pidPath(spec.name), JSON.stringify(file))
  }

  /** Why a started process has ended, or null while it runs. */
  ended(name: string): string | null {
    const entry = this.#children.get(name)
    if (entry === undefined) return `${name} was not started`
    const { child } = entry
    if (child.pid === undefined) return `${entry.spec.command} cannot be run`
    if (child.exitCode === null && child.signalCode === null) return null
    return `it ended with ${child.exitCode ?? child.signalCode}; see ${this.logFile(name)}:\n${this.#tail(name)}`
  }

  /** Sends a signal without waiting: fault tests kill and freeze this way. */
  signal(name: string, signal: NodeJS.Signals): void {
    const pid = this.#children.get(name)?.child.pid
    if (pid === undefined) throw new WeirError('internal', `${name} does not run`)
    process.kill(pid, signal)
  }

  /** Resolves when the process has ended by itself or by a signal. */
  async gone(name: string, withinMs: number): Promise<void> {
    await waitUntil(() => Promise.resolve(this.ended(name) !== null), { what: `end of ${name}`, withinMs })
  }

  async stop(name: string): Promise<void> {
    const file = this.#read(name)
    if (file !== null) await endProcess(file, this.#children.get(name)?.spec.stopWithinMs ?? 15_000)
    rmSync(this.#pidPath(name), { force: true })
    this.#children.delete(name)
  }

  /** Stops everything this folder knows of, last started first: also what an earlier run left behind. */
  async stopAll(): Promise<void> {
    const started = [...this.#children.keys()].reverse()
    const known = readdirSync(join(this.#stateDir, 'run'))
      .filter(file => file.endsWith('.pid'))
      .map(file => file.slice(0, -'.pid'.length))
    for (const name of started) await this.stop(name)
    await Promise.all(known.filter(name => !started.includes(name)).map(name => this.stop(name)))
  }

  /** Names of the processes of this folder that are alive. */
  running(): string[] {
    return readdirSync(join(this.#stateDir, 'run'))
      .filter(file => file.endsWith('.pid'))
      .map(file => file.slice(0, -'.pid'.length))
      .filter(name => {
        const file = this.#read(name)
        return file !== null && isAlive(file)
      })
  }

  #tail(name: string): string {
    const lines = readFileSync(this.logFile(name), 'utf8').trimEnd().split('\n')
    return lines.slice(-15).join('\n')
  }

  #read(name: string): PidFile | null {
    try {
      return JSON.parse(readFileSync(this.#pidPath(name), 'utf8')) as PidFile
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
      throw error
    }
  }

  #pidPath(name: string): string {
    return join(this.#stateDir, 'run', `${name}.pid`)
  }
}

async function endProcess(file: PidFile, withinMs: number): Promise<void> {
  if (!isAlive(file)) return
  send(file.pid, file.stopSignal)
  // A frozen process cannot end before it runs again.
  send(file.pid, 'SIGCONT')
  const gone = () => Promise.resolve(!isAlive(file))
  try {
    await waitUntil(gone, { what: `end of process ${file.pid}`, withinMs })
  } catch {
    send(file.pid, 'SIGKILL')
    await waitUntil(gone, { what: `end of process ${file.pid} after SIGKILL`, withinMs: 5_000 })
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

function isAlive(file: PidFile): boolean {
  const startTime = startTimeOf(file.pid)
  return startTime !== null && (file.startTime === '' || startTime === file.startTime)
}

/** Start time of a live process (not a zombie) as the system tells it, or null. Without /proc the pid alone must do. */
function startTimeOf(pid: number): string | null {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
    return fields[0] === 'Z' || fields[0] === 'X' ? null : (fields[19] ?? '')
  } catch (error) {
    if (process.platform === 'linux' || (error as NodeJS.ErrnoException).code !== 'ENOENT') return null
  }
  try {
    process.kill(pid, 0)
    return ''
  } catch {
    return null
  }
}
