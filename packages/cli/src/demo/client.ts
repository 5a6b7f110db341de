import { connect } from 'node:net'
import type { Outgoing } from './requests.ts'

export interface Answer {
  readonly status: number
  /** Code of a problem, or `ok`. */
  readonly code: string
  readonly body: Readonly<Record<string, unknown>>
}

/** Counts every request and every answer: nothing the demo says is estimated. */
export class Sender {
  readonly #base: string
  readonly #answers = new Map<string, number>()
  #sent = 0

  constructor(base: string) {
    this.#base = base
  }

  get sent(): number {
    return this.#sent
  }

  answered(code: string): number {
    return this.#answers.get(code) ?? 0
  }

  async send(request: Outgoing, change: Readonly<Record<string, string>> = {}): Promise<Answer> {
    this.#sent += 1
    const response = await fetch(this.#base + request.path, {
      method: 'POST',
      body: new Uint8Array(request.body),
      headers: { ...request.headers(Date.now()), ...change },
      signal: AbortSignal.timeout(30_000),
    })
    const body = (await response.json()) as Readonly<Record<string, unknown>>
    const code = response.ok ? 'ok' : String(body['code'])
    this.#answers.set(code, (this.#answers.get(code) ?? 0) + 1)
    return { status: response.status, code, body }
  }

  /** As a well-behaved sender: 503 is tried again. Throws when it is not taken within half a minute. */
  async deliver(request: Outgoing): Promise<Answer> {
    const deadline = Date.now() + 30_000
    for (;;) {
      const answer = await this.send(request)
      if (answer.status === 202) return answer
      if (answer.status !== 503 || Date.now() > deadline) {
        throw new Error(`${request.path} was answered ${answer.status} ${answer.code}`)
      }
      await new Promise(resolve => setTimeout(resolve, 500))
    }
  }

  /** Promises a body, sends a part of it and hangs up. */
  cutOff(request: Outgoing): Promise<void> {
    this.#sent += 1
    const { hostname, port } = new URL(this.#base)
    const headers = Object.entries(request.headers(Date.now())).map(([name, value]) => `${name}: ${value}\r\n`)
    const head = `POST ${request.path} HTTP/1.1\r\nhost: ${hostname}\r\ncontent-length: ${request.body.length}\r\n${headers.join('')}\r\n`
    return new Promise((resolve, reject) => {
      const socket = connect(Number(port), hostname, () => {
        socket.write(head)
        socket.end(request.body.subarray(0, Math.floor(request.body.length / 2)))
      })
      socket.resume()
      socket.once('close', () => resolve())
      // The server may end the connection first.
      socket.once('error', error =>
        (error as NodeJS.ErrnoException).code === 'ECONNRESET' ? resolve() : reject(error),
      )
    })
  }
}
