import { afterEach, describe, expect, it } from 'vitest'
import { startAdminServer, type AdminServer, type Health } from './admin-server.ts'
import { createLog } from './log.ts'
import { createMetrics } from './metrics.ts'

const log = createLog({ service: 'test', level: 'error', destination: { write: () => {} } })
let server: AdminServer | null = null

afterEach(async () => {
  await server?.close()
})

async function start(health: Partial<Health> = {}): Promise<string> {
  server = await startAdminServer({
    host: '127.0.0.1',
    port: 0,
    health: { live: () => null, ready: () => null, ...health },
    metrics: createMetrics('test'),
    log,
  })
  return `http://127.0.0.1:${server.port}`
}

describe('the admin server', () => {
  it('is green while nothing is wrong', async () => {
    const base = await start()
    for (const path of ['/livez', '/readyz', '/readyz?verbose']) {
      const answer = await fetch(base + path)
      expect([answer.status, await answer.text()]).toEqual([200, 'ok\n'])
    }
  })

  it('says why it is red, at the moment of the question', async () => {
    let reason: string | null = null
    const base = await start({ ready: () => reason, live: () => 'partition 3 has not moved for 60 s' })
    expect((await fetch(`${base}/readyz`)).status).toBe(200)
    reason = 'stopping'
    const ready = await fetch(`${base}/readyz`)
    expect([ready.status, await ready.text()]).toEqual([503, 'stopping\n'])
    const live = await fetch(`${base}/livez`)
    expect([live.status, await live.text()]).toEqual([503, 'partition 3 has not moved for 60 s\n'])
  })

  it('gives the metrics in Prometheus’s format', async () => {
    const answer = await fetch(`${await start()}/metrics`)
    expect(answer.headers.get('content-type')).toContain('text/plain; version=0.0.4')
  })

  it('refuses other paths and methods', async () => {
    const base = await start()
    expect((await fetch(`${base}/`)).status).toBe(404)
    const posted = await fetch(`${base}/livez`, { method: 'POST', body: 'x' })
    expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  })

  it('answers an error of a check with a closed connection, not with a crash', async () => {
    const base = await start({
      ready: () => {
        throw new Error('a bug in the check')
      },
    })
    await expect(fetch(`${base}/readyz`)).rejects.toThrow('fetch failed')
    expect((await fetch(`${base}/livez`)).status).toBe(200)
  })

  it('rejects when its port is taken, and can be closed twice', async () => {
    const base = await start()
    const port = Number(new URL(base).port)
    const options = {
      host: '127.0.0.1',
      health: { live: () => null, ready: () => null },
      metrics: createMetrics('test'),
      log,
    }
    await expect(startAdminServer({ ...options, port })).rejects.toMatchObject({ code: 'EADDRINUSE' })
    await server?.close()
    await server?.close()
  })
})
