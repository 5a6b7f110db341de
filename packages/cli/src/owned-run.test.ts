import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isSame, type ProcessStart } from '@weir/ops'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'weir-owned-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const module = (path: string): string => JSON.stringify(new URL(path, import.meta.url).href)

/** A run in a process of its own, with a child `sleep`; `then` is what it does when that has started. */
const start = (then: string) => {
  const code = `
    const { ownedRun } = await import(${module('owned-run.ts')})
    const { Supervisor } = await import(${module('../../../ops/src/supervisor.ts')})
    const stateDir = ${JSON.stringify(folder)}
    const untilAborted = signal => new Promise((_, reject) => {
      setInterval(() => undefined, 1000)
      signal.addEventListener('abort', () => reject(signal.reason))
    })
    try {
      process.exitCode = await ownedRun(stateDir, async run => {
        const supervisor = new Supervisor(stateDir)
        supervisor.start({ name: 'child', command: 'sleep', args: ['60'] })
        run.onEnd(async () => { await supervisor.stopAll(); console.log('child ended') })
        run.onEnd(async () => console.log('ended first'))
        console.log('started')
        ${then}
      })
    } catch (error) {
      console.log('threw ' + error.message)
      process.exitCode = 1
    }
    process.exit()`
  const child = spawn(process.execPath, [...process.execArgv, '--input-type=module', '--eval', code], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  let stdout = ''
  const started = new Promise<void>(resolve => {
    child.stdout.on('data', (chunk: Buffer) => {
      stdout += chunk.toString()
      if (stdout.includes('started')) resolve()
    })
  })
  const ended = new Promise<{ code: number | null; stdout: string }>(resolve => {
    child.once('close', code => resolve({ code, stdout }))
  })
  return { child, started, ended }
}
const childOf = (): ProcessStart => {
  const file: unknown = JSON.parse(readFileSync(join(folder, 'run', 'child.pid'), 'utf8'))
  return file as ProcessStart
}

describe('a run that owns its processes', () => {
  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 143],
  ] as const)('ends what it started on %s, last first, and ends with %d', async (signal, code) => {
    const { child, started, ended } = start('await untilAborted(run.signal)')
    await started
    const sleep = childOf()
    expect(isSame(sleep)).toBe(true)
    child.kill(signal)
    expect(await ended).toEqual({ code, stdout: 'started\nended first\nchild ended\n' })
    expect(isSame(sleep)).toBe(false)
  })

  it('does so when its work fails', async () => {
    const { started, ended } = start('throw new Error("no luck")')
    await started
    const answer = await ended
    expect(answer).toEqual({ code: 1, stdout: 'started\nended first\nchild ended\nthrew no luck\n' })
  })

  it('returns what its work returns', async () => {
    expect(await start('return 7').ended).toMatchObject({ code: 7 })
  })

  it('goes on ending when one end fails', async () => {
    const { ended } = start('run.onEnd(async () => { throw new Error("stuck") }); return 0')
    expect(await ended).toEqual({ code: 1, stdout: 'started\nended first\nchild ended\nthrew stuck\n' })
  })

  it('leaves at once at the second signal, and its processes end all the same', async () => {
    const { child, started, ended } = start('run.onEnd(() => new Promise(() => {})); await untilAborted(run.signal)')
    await started
    const sleep = childOf()
    child.kill('SIGINT')
    const again = setInterval(() => child.kill('SIGINT'), 50)
    expect(await ended).toEqual({ code: 130, stdout: 'started\n' })
    clearInterval(again)
    await expect.poll(() => isSame(sleep), { timeout: 5_000 }).toBe(false)
  })

  it('refuses to begin where another one works, and takes over from one that was killed', async () => {
    const first = start('await untilAborted(run.signal)')
    await first.started
    const second = await start('return 0').ended
    expect(second.stdout).toMatch(/^threw another run works in .* \(process \d+\); wait for it or end it\n$/)
    first.child.kill('SIGKILL')
    await first.ended
    expect(await start('return 0').ended).toMatchObject({ code: 0 })
  })
})
