// The container engine's way, with a `docker` that writes down what it is asked for: no engine runs where the tests run.
import { execFile } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { DataPolicy } from './native.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'weir-compose-'))
  const docker = join(folder, 'docker')
  writeFileSync(docker, `#!/bin/sh\necho "$POSTGRES_PASSWORD $*" >>'${folder}/calls'\n`)
  chmodSync(docker, 0o755)
})
afterEach(() => rmSync(folder, { recursive: true }))

const stateDir = (): string => join(folder, 'state')
const envFile = (): string => join(stateDir(), 'compose.env')

/** Starts and stops the stack in a process with that docker first on its path; returns what `startStack` said. */
async function startAndStop(
  data: DataPolicy,
): Promise<{ readonly urls: Record<string, string>; readonly modes: object }> {
  const code = `
    const { startStack } = await import(${JSON.stringify(new URL('stack.ts', import.meta.url).href)})
    const { urls, modes, ...stack } = await startStack({
      stateDir: ${JSON.stringify(stateDir())}, toolsDir: ${JSON.stringify(join(folder, 'tools'))}, data: '${data}',
      env: {}, progress: { line() {} }, signal: new AbortController().signal,
    })
    await stack.stop()
    console.log(JSON.stringify({ urls, modes }))`
  const PATH = [folder, process.env['PATH'] ?? ''].join(delimiter)
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [...process.execArgv, '--input-type=module', '--eval', code],
    // A password of the caller's own must not win over the stack's.
    { env: { ...process.env, PATH, POSTGRES_PASSWORD: 'somebody-else' } },
  )
  return JSON.parse(stdout) as { urls: Record<string, string>; modes: object }
}

/** What docker compose was asked for, and with which password. */
const composeCalls = (): { readonly password: string; readonly verb: string }[] =>
  readFileSync(join(folder, 'calls'), 'utf8')
    .trim()
    .split('\n')
    .filter(line => line.includes('--project-name'))
    .map(line => ({
      password: line.split(' ')[0] ?? '',
      verb: line.replace(/^.*--project-name weir-[0-9a-f]{8} /, ''),
    }))
const start = 'up --detach --wait kafka registry postgres redis'

describe('with a container engine', () => {
  it('has all four services from docker-compose.yml, and throws fresh data away at the end', async () => {
    const { urls, modes } = await startAndStop('fresh')
    expect(new Set(Object.values(modes))).toEqual(new Set(['container']))
    expect(composeCalls().map(({ verb }) => verb)).toEqual([start, 'down --volumes'])
    expect(urls['WEIR_KAFKA_BROKERS']).toMatch(/^127\.0\.0\.1:\d{5}$/)
    expect(urls['WEIR_SCHEMA_REGISTRY_URL']).toMatch(/^http:\/\/127\.0\.0\.1:\d{5}\/apis\/ccompat\/v7$/)
    const password = new URL(urls['DATABASE_URL'] ?? '').password
    expect(password).toMatch(/^[0-9a-f]{36}$/)
    expect(composeCalls().map(call => call.password)).toEqual([password, password])
    expect(existsSync(envFile())).toBe(false)
  })

  it('keeps volumes, ports and password when data is kept, and drops them before the next fresh start', async () => {
    const first = await startAndStop('kept')
    expect(await startAndStop('kept')).toEqual(first)
    expect(composeCalls().map(({ verb }) => verb)).toEqual([start, 'down', start, 'down'])
    const fresh = await startAndStop('fresh')
    expect(fresh.urls['DATABASE_URL']).not.toBe(first.urls['DATABASE_URL'])
    expect(
      composeCalls()
        .map(({ verb }) => verb)
        .slice(4),
    ).toEqual(['down --volumes', start, 'down --volumes'])
  })
})
