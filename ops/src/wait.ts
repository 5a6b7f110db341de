import { createConnection, createServer, type AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { WeirError } from '@weir/core'

export interface WaitOptions {
  /** What is awaited, for the message. */
  readonly what: string
  readonly withinMs: number
  /** Ends the wait early with this text when it returns one (for example: the process has ended). */
  readonly givenUp?: () => string | null
  readonly signal?: AbortSignal
}

/** Asks until `check` is true. Throws `prerequisite_missing` naming what was awaited when the time is over. */
export async function waitUntil(check: () => Promise<boolean>, options: WaitOptions): Promise<void> {
  const deadline = performance.now() + options.withinMs
  for (;;) {
    options.signal?.throwIfAborted()
    if (await check()) return
    const reason = options.givenUp?.() ?? null
    if (reason !== null) throw new WeirError('prerequisite_missing', `${options.what}: ${reason}`)
    if (performance.now() > deadline) {
      throw new WeirError('prerequisite_missing', `${options.what}: not ready within ${options.withinMs / 1000} s`)
    }
    await delay(100)
  }
}

/** Whether something accepts connections there. */
export function accepts(port: number, host = '127.0.0.1'): Promise<boolean> {
  return new Promise(resolve => {
    const socket = createConnection({ host, port })
    const end = (answer: boolean): void => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('connect', () => end(true))
    socket.once('error', () => end(false))
    socket.setTimeout(1_000, () => end(false))
  })
}

/** Ports nobody listens on just now, all different. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(Array.from({ length: count }, () => listen()))
  const ports = servers.map(server => (server.address() as AddressInfo).port)
  await Promise.all(servers.map(server => new Promise(resolve => server.close(resolve))))
  return ports
}

function listen(): Promise<ReturnType<typeof createServer>> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => resolve(server))
  })
}
