import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { PortBook } from './port-book.ts'
import { freePorts, isFree } from './wait.ts'

describe('ports', () => {
  let folder: string
  let server: Server | null
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'weir-ports-'))
    server = null
  })
  afterEach(() => {
    server?.close()
    rmSync(folder, { recursive: true })
  })

  const listen = (port: number): Promise<void> =>
    new Promise((resolve, reject) => {
      server = createServer().once('error', reject)
      server.listen(port, '127.0.0.1', resolve)
    })

  it('are all different, free, and below those that systems give to outgoing connections', async () => {
    const ports = (await Promise.all([freePorts(20), freePorts(20)])).flat()
    expect(new Set(ports).size).toBe(40)
    expect(ports.every(port => port >= 20_000 && port < 32_768)).toBe(true)
    expect(await isFree(ports[0] ?? 0)).toBe(true)
  })

  it('stay the same at the next start', async () => {
    const file = join(folder, 'ports.json')
    const first = new PortBook(file)
    const taken = [await first.take('kafka'), await first.take('redis')]
    const next = new PortBook(file)
    expect([await next.take('kafka'), await next.take('redis')]).toEqual(taken)
  })

  it('change when somebody else has them by then', async () => {
    const file = join(folder, 'ports.json')
    const port = await new PortBook(file).take('kafka')
    await listen(port)
    const other = await new PortBook(file).take('kafka')
    expect(other).not.toBe(port)
    expect(await new PortBook(file).take('kafka')).toBe(other)
  })
})
