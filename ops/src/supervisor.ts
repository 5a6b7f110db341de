// Child processes with logs, pid files and a bounded end. A pid file names the process by pid and start time, so that another
// program with the same pid is never touched.
import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { WeirError } from '@weir/core'
import { isSame, startOf, type ProcessStart } from './process-start.ts'
import { Reaper } from './reaper.ts'
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

interface PidFile extends ProcessStart {
  readonly stopSignal: NodeJS.Signals
  readonly stopWithinMs: number
}

const defaultStopWithinMs = 15_000

export class Supervisor {
  readonly #stateDir: string
  readonly #reaper = new Reaper()
  readonly #children = new Map<string, { readonly spec: ProcessSpec; readonly child: ChildProcess }>()

  constructor(stateDir: string) {
    this.#stateDir = stateDir
    mkdirSync(join(stateDir, 'run'), { recursive: true })
    mkdirSync(join(stateDir, 'logs'), { recursive: true })
  }

  logFile(name: string): string {
    return join(this.#stateDir, 'logs', `${name}.log`)
  }

  /** Starts a process. It ends with this one, unless `release` was called. */
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
    this.#reaper.watch(child)
    const file: PidFile = {
      ...(startOf(child.pid) ?? { pid: child.pid, startedAt: '' }),
      stopSignal: spec.stopSignal ?? 'SIGTERM',
      stopWithinMs: spec.stopWithinMs ?? defaultStopWithinMs,
    }
    const path = this.#pidPath(spec.name)
    writeFileSync(`${path}.new`, JSON.stringify(file))
    renameSync(`${path}.new`, path)
  }

  /** Lets everything live on when this process ends; the next supervisor of the folder finds it by its pid files. */
  release(): void {
    this.#reaper.release()
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
    if (file !== null) await endProcess(file)
    rmSync(this.#pidPath(name), { force: true })
    this.#children.delete(name)
  }

  /** Stops everything this folder knows of, last started first: also what an earlier run left behind. */
  async stopAll(): Promise<void> {
    const started = [...this.#children.keys()].reverse()
    const known = this.#known()
    for (const name of started) await this.stop(name)
    await Promise.all(known.filter(name => !started.includes(name)).map(name => this.stop(name)))
  }

  /** Names of the processes of this folder that are alive. */
  running(): string[] {
    return this.#known().filter(name => {
      const file = this.#read(name)
      return file !== null && isSame(file)
    })
  }

  #known(): string[] {
    return readdirSync(join(this.#stateDir, 'run'))
      .filter(file => file.endsWith('.pid'))
      .map(file => file.slice(0, -'.pid'.length))
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

async function endProcess(file: PidFile): Promise<void> {
  if (!isSame(file)) return
  send(file.pid, file.stopSignal)
  // A frozen process cannot end before it runs again.
  send(file.pid, 'SIGCONT')
  if (await endsWithin(file, file.stopWithinMs)) return
  send(file.pid, 'SIGKILL')
  if (await endsWithin(file, 5_000)) return
  throw new WeirError('internal', `process ${file.pid} did not end within 5 s of SIGKILL`)
}

async function endsWithin(file: PidFile, withinMs: number): Promise<boolean> {
  const deadline = performance.now() + withinMs
  while (isSame(file)) {
    if (performance.now() > deadline) return false
    await delay(50)
  }
  return true
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
