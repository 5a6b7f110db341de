// The shell script `weir` in a checkout of its own, with an npm that writes down what it was asked for instead of a registry.
import { spawn } from 'node:child_process'
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const script = fileURLToPath(new URL('../weir', import.meta.url))
let folder: string
let checkout: string
let bin: string

const program = (name: string, text: string): void => {
  writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`)
  chmodSync(join(bin, name), 0o755)
}
const calls = (): string[] => {
  const file = join(folder, 'npm-calls')
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
}
const state = (): string[] => readdirSync(join(checkout, '.weir')).toSorted()

/** Node of this test, a Node that is too old, or none. */
const haveNode = (kind: 'fit' | 'old'): void => {
  if (kind === 'fit') symlinkSync(process.execPath, join(bin, 'node'))
  // What `node -e` ends with when the version does not do.
  else program('node', 'exit 1')
}
const haveNpm = (during = ''): void => {
  const install = `
    case $1 in
      ci) mkdir -p node_modules ;;
      install) mkdir -p "$3/node_modules/node-x/bin" && ln -s '${process.execPath}' "$3/node_modules/node-x/bin/node" ;;
    esac`
  program('npm', `echo "$@" >>'${folder}/npm-calls'\n${during}\n${install}`)
}

interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

const start = (args: readonly string[], path = join(checkout, 'weir')) => {
  const child = spawn(path, args, {
    cwd: '/',
    detached: true,
    env: {
      PATH: [bin, '/usr/bin', '/bin'].filter(part => part === bin || !existsSync(join(part, 'npm'))).join(delimiter),
    },
  })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', code => resolve({ code, stdout, stderr }))
  })
  return { child, ended }
}
const run = async (args: readonly string[], path?: string): Promise<Ended> => await start(args, path).ended

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'weir-script-'))
  checkout = join(folder, 'a checkout')
  bin = join(folder, 'bin')
  mkdirSync(join(checkout, 'packages/cli/src'), { recursive: true })
  mkdirSync(bin)
  copyFileSync(script, join(checkout, 'weir'))
  writeFileSync(join(checkout, 'package-lock.json'), '{}')
  writeFileSync(join(checkout, 'packages/cli/src/main.ts'), 'console.log(JSON.stringify(process.argv.slice(2)))')
  // The tools of the script, in a folder without node and npm.
  for (const tool of ['cat', 'cksum', 'date', 'dirname', 'ln', 'mkdir', 'mv', 'readlink', 'rm', 'sleep', 'uname']) {
    const found = ['/usr/bin', '/bin'].map(place => join(place, tool)).find(existsSync)
    if (found !== undefined) symlinkSync(found, join(bin, tool))
  }
})
afterEach(() => rmSync(folder, { recursive: true }))

describe('the script weir', () => {
  it('installs the packages once, and again when the lock file has changed', async () => {
    haveNode('fit')
    haveNpm()
    const first = await run(['send', 'a b', '--times', '3'])
    expect(first).toMatchObject({ code: 0, stdout: '["send","a b","--times","3"]\n' })
    expect(first.stderr).toMatch(/installing the npm packages[^]*npm packages: \d+ s/)
    expect(await run([])).toEqual({ code: 0, stdout: '[]\n', stderr: '' })
    expect(calls()).toEqual(['ci --ignore-scripts --no-audit --no-fund --loglevel=error'])
    writeFileSync(join(checkout, 'package-lock.json'), '{ }')
    await run([])
    expect(calls()).toHaveLength(2)
  })

  it('gets a Node of its own when the installed one is too old', async () => {
    haveNode('old')
    haveNpm()
    expect(await run(['status'])).toMatchObject({ code: 0, stdout: '["status"]\n' })
    expect(calls()[0]).toMatch(/^install --prefix .* node-[a-z0-9-]+@24\.\d+\.\d+$/)
    expect(state()).toEqual(['node'])
  })

  it('works through a link', async () => {
    haveNode('fit')
    haveNpm()
    symlinkSync('../a checkout/weir', join(bin, 'weir'))
    expect(await run(['up'], join(bin, 'weir'))).toMatchObject({ code: 0, stdout: '["up"]\n' })
  })

  it('installs once when it runs three times at once', async () => {
    haveNode('old')
    haveNpm('sleep 0.3')
    const ended = await Promise.all([run(['1']), run(['2']), run(['3'])])
    expect(ended.map(({ code, stdout }) => [code, stdout.trim()])).toEqual([
      [0, '["1"]'],
      [0, '["2"]'],
      [0, '["3"]'],
    ])
    expect(calls().map(call => call.split(' ')[0])).toEqual(['install', 'ci'])
    expect(state()).toEqual(['node'])
  })

  it('takes over the lock of a run that was killed', async () => {
    haveNode('fit')
    haveNpm()
    mkdirSync(join(checkout, '.weir'))
    symlinkSync(String(2 ** 22 + 1), join(checkout, '.weir', 'install.lock'))
    expect(await run([])).toMatchObject({ code: 0 })
    expect(state()).toEqual([])
  })

  it('leaves nothing that looks complete when it is interrupted', async () => {
    haveNode('old')
    haveNpm('echo now >&2; exec sleep 20')
    const { child, ended } = start([])
    await new Promise(resolve => child.stderr.on('data', chunk => String(chunk).includes('now') && resolve(null)))
    process.kill(-(child.pid ?? 0), 'SIGINT')
    expect(await ended).toMatchObject({ stdout: '' })
    expect(state()).toEqual([])
    haveNpm()
    expect(await run(['again'])).toMatchObject({ code: 0, stdout: '["again"]\n' })
  })

  it('says what to do when there is no npm', async () => {
    expect(await run([])).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('install Node 20 or newer with npm') as string,
    })
  })

  it('ends with the exit code of the command', async () => {
    haveNode('fit')
    haveNpm()
    writeFileSync(join(checkout, 'packages/cli/src/main.ts'), 'process.exitCode = 7')
    expect(await run([])).toMatchObject({ code: 7 })
  })
})
