import { randomInt } from 'node:crypto'
import { createConnection, createServer } from 'node:net'
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

/**
 * Ports nobody listens on just now, all different. Taken below the range from which systems give ports to outgoing connections (from
 * 32768): a server that is started again must find its port free.
 */
export async function freePorts(count: number): Promise<number[]> {
  const found: number[] = []
  for (let tries = 0; found.length < count; tries++) {
    if (tries === 1_000) {
      throw new WeirError('prerequisite_missing', 'no free TCP port between 20000 and 29999 on 127.0.0.1')
    }
    const port = randomInt(20_000, 30_000)
    if (handedOut.has(port) || !(await isFree(port))) continue
    handedOut.add(port)
    found.push(port)
  }
  return found
}

// A port is free until its server listens; without this, two servers that start at once could be given the same.
const handedOut = new Set<number>()

/** Whether a server could listen there. */
export function isFree(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
