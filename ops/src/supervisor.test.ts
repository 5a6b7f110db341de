import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { isSame, startOf, type ProcessStart } from './process-start.ts'
import { Supervisor } from './supervisor.ts'
import { waitUntil } from './wait.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'weir-supervisor-'))
})
afterEach(async () => {
  await new Supervisor(folder).stopAll()
  rmSync(folder, { recursive: true })
})

const pidFile = (name: string): ProcessStart => {
  const file: unknown = JSON.parse(readFileSync(join(folder, 'run', `${name}.pid`), 'utf8'))
  return file as ProcessStart
}
const sh = (name: string, script: string) => ({ name, command: 'sh', args: ['-c', script] })
const says = async (supervisor: Supervisor, name: string, text: string): Promise<void> =>
  await waitUntil(() => Promise.resolve(readFileSync(supervisor.logFile(name), 'utf8').includes(text)), {
    what: `${text} in the log of ${name}`,
    withinMs: 10_000,
  })
const expectGone = async (process: ProcessStart): Promise<void> =>
  await waitUntil(() => Promise.resolve(!isSame(process)), { what: `end of ${process.pid}`, withinMs: 10_000 })

describe('a supervised process', () => {
  it('is asked to end, and its output is in its log', async () => {
    const supervisor = new Supervisor(folder)
    supervisor.start(sh('polite', 'trap "echo bye; exit 0" TERM; echo up; while :; do sleep 0.05; done'))
    await says(supervisor, 'polite', 'up')
    expect(supervisor.running()).toEqual(['polite'])
    await supervisor.stop('polite')
    expect(readFileSync(supervisor.logFile('polite'), 'utf8')).toContain('bye')
    expect(supervisor.running()).toEqual([])
  })

  it('is killed when it does not end in its time', async () => {
    const supervisor = new Supervisor(folder)
    supervisor.start({ ...sh('deaf', 'trap "" TERM; echo up; while :; do sleep 0.05; done'), stopWithinMs: 200 })
    await says(supervisor, 'deaf', 'up')
    const process = pidFile('deaf')
    await supervisor.stop('deaf')
    expect(isSame(process)).toBe(false)
  })

  it('ends when it was frozen', async () => {
    const supervisor = new Supervisor(folder)
    supervisor.start(sh('frozen', 'exec sleep 60'))
    const process = pidFile('frozen')
    supervisor.signal('frozen', 'SIGSTOP')
    await supervisor.stop('frozen')
    expect(isSame(process)).toBe(false)
  })

  it('says why it has ended, with the end of its log', async () => {
    const supervisor = new Supervisor(folder)
    supervisor.start(sh('broken', 'echo no such setting; exit 7'))
    await supervisor.gone('broken', 10_000)
    expect(supervisor.ended('broken')).toMatch(/it ended with 7; see .*broken\.log:\nno such setting/)
  })

  it('says so when its program is not there', () => {
    const supervisor = new Supervisor(folder)
    supervisor.start({ name: 'nowhere', command: join(folder, 'no-such-program'), args: [] })
    expect(supervisor.ended('nowhere')).toContain('no-such-program cannot be run')
  })
})

describe('pid files', () => {
  it('do not hit another program that has the pid by now', async () => {
    const supervisor = new Supervisor(folder)
    supervisor.start(sh('innocent', 'exec sleep 60'))
    const { pid } = pidFile('innocent')
    const stale = { pid, startedAt: 'another boot 1', stopSignal: 'SIGKILL', stopWithinMs: 100 }
    writeFileSync(join(folder, 'run', 'old.pid'), JSON.stringify(stale))
    expect(supervisor.running()).toEqual(['innocent'])
    await supervisor.stop('old')
    expect(startOf(pid)).not.toBeNull()
  })

  it('lead the next supervisor to what was left running', async () => {
    const first = new Supervisor(folder)
    first.start(sh('left', 'exec sleep 60'))
    const process = pidFile('left')
    await new Supervisor(folder).stopAll()
    await expectGone(process)
  })
})

describe('when the parent is killed', () => {
  const parent = (script: string) => {
    const supervisorUrl = new URL('supervisor.ts', import.meta.url).href
    const code = `const { Supervisor } = await import(${JSON.stringify(supervisorUrl)})
      const supervisor = new Supervisor(${JSON.stringify(folder)})
      supervisor.start({ name: 'child', command: 'sleep', args: ['60'] })
      ${script}
      process.stdout.write('started')
      setInterval(() => undefined, 1000)`
    return spawn(process.execPath, [...process.execArgv, '--input-type=module', '--eval', code], {
      cwd: fileURLToPath(new URL('.', import.meta.url)),
      stdio: ['ignore', 'pipe', 'inherit'],
    })
  }
  const killed = async (script: string): Promise<ProcessStart> => {
    const process = parent(script)
    await new Promise(resolve => process.stdout.once('data', resolve))
    const child = pidFile('child')
    expect(isSame(child)).toBe(true)
    process.kill('SIGKILL')
    await new Promise(resolve => process.once('exit', resolve))
    return child
  }

  it('nothing of it stays', async () => {
    await expectGone(await killed(''))
  })

  it('what was released lives on', async () => {
    const child = await killed('supervisor.release(); await new Promise(resolve => setTimeout(resolve, 200))')
    // Nothing to wait for: that it was not killed shows only in time.
    await new Promise(resolve => setTimeout(resolve, 300))
    expect(isSame(child)).toBe(true)
  })
})

describe('the start of a process', () => {
  it('is the same at each look, and null when there is no such process', () => {
    const me = startOf(process.pid)
    expect(me).toEqual(startOf(process.pid))
    expect(me !== null && isSame(me)).toBe(true)
    expect(startOf(2 ** 22 + 1)).toBeNull()
  })

  it('is read right when the name holds brackets and blanks', async () => {
    const supervisor = new Supervisor(folder)
    const script = join(folder, 'a) R (b')
    writeFileSync(script, '#!/bin/sh\necho up; while :; do sleep 0.1; done\n', { mode: 0o755 })
    supervisor.start({ name: 'odd', command: script, args: [] })
    await says(supervisor, 'odd', 'up')
    expect(pidFile('odd').startedAt).toMatch(/^[0-9a-f-]{36} \d+$/)
  })
})
