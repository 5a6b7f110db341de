// Between a simulated process and what it calls: every request and every answer is a thing of its own that happens, or does not.
import type { Timeline } from './timeline.ts'
import type { Journal } from './journal.ts'
import type { Random } from './random.ts'
import { startMs } from './timeline.ts'
import type { Fault } from './scenario.ts'

export type Service = 'kafka' | 'postgres' | 'redis'

/** One life of a process: from a start to its end. */
export class Life {
  readonly name: string
  #isDead = false
  #isFrozen = false
  #inbox: (() => void)[] = []

  constructor(name: string) {
    this.name = name
  }

  get isDead(): boolean {
    return this.#isDead
  }

  get isFrozen(): boolean {
    return this.#isFrozen
  }

  /** Nothing reaches it any more, and it does nothing more. */
  end(): void {
    this.#isDead = true
    this.#inbox = []
  }

  freeze(): void {
    this.#isFrozen = true
  }

  /** It runs again; what came meanwhile comes now, one after the other. */
  thaw(timeline: Timeline): void {
    this.#isFrozen = false
    const inbox = this.#inbox
    this.#inbox = []
    for (const run of inbox) timeline.after(0, () => this.deliver(run))
  }

  deliver(run: () => void): void {
    if (this.#isDead) return
    if (this.#isFrozen) this.#inbox.push(run)
    else run()
  }
}

export interface Request {
  readonly service: Service
  readonly kind: string
  readonly text: string
  readonly lost: () => Error
}

/** What the network needs of the world around it. */
export interface NetworkHost {
  /** Faults of the request with this number; those of the whole world have happened when it returns. */
  strike(point: number, life: Life): readonly Fault[]
  isDown(service: Service): boolean
  /** Changes when the service was set back: answers from before are lost. */
  incarnation(service: Service): number
  /** False when it cannot be killed: a sender. */
  kill(life: Life): boolean
  freeze(life: Life, ms: number): void
  /** After a request was done: what may have been violated by it. */
  done(life: Life, request: Request): void
}

/** After this without an answer a caller takes it for lost. */
const timeoutMs = 500
const baseMs = 1

export class Network {
  readonly #timeline: Timeline
  readonly #journal: Journal
  readonly #random: Random
  readonly #jitterMs: number
  readonly #host: NetworkHost
  #points = 0

  constructor(
    timeline: Timeline,
    journal: Journal,
    options: { readonly random: Random; readonly jitterMs: number },
    host: NetworkHost,
  ) {
    this.#timeline = timeline
    this.#journal = journal
    this.#random = options.random
    this.#jitterMs = options.jitterMs
    this.#host = host
  }

  /** Requests made so far. */
  get points(): number {
    return this.#points
  }

  note(who: string, what: string): void {
    this.#journal.note(this.#timeline.nowMs() - startMs, who, what)
  }

  latencyMs(): number {
    return baseMs + (this.#jitterMs === 0 ? 0 : this.#random.between(0, this.#jitterMs))
  }

  call<T>(life: Life, request: Request, perform: () => T | Promise<T>): Promise<T> {
    const faults = life.isDead ? [] : this.#host.strike(++this.#points, life)
    return new Promise<T>((resolve, reject) => {
      if (life.isDead) return
      const has = (kind: Fault['kind']): Fault | undefined => faults.find(fault => fault.kind === kind)
      if (has('kill-before') && this.#host.kill(life)) return
      const send = (): void => new Exchange(this.#parts(life, request, faults), perform, resolve, reject).send()
      const frozen = has('freeze-before')
      if (frozen) this.#host.freeze(life, frozen.ms)
      life.deliver(send)
      const after = has('freeze-after')
      if (after) this.#host.freeze(life, after.ms)
      if (has('kill-after')) this.#host.kill(life)
    })
  }

  #parts(life: Life, request: Request, faults: readonly Fault[]): ExchangeParts {
    return {
      life,
      request,
      faults,
      host: this.#host,
      timeline: this.#timeline,
      latencyMs: () => this.latencyMs(),
      note: what => this.note(life.name, what),
    }
  }
}

interface ExchangeParts {
  readonly life: Life
  readonly request: Request
  readonly faults: readonly Fault[]
  readonly host: NetworkHost
  readonly timeline: Timeline
  readonly latencyMs: () => number
  readonly note: (what: string) => void
}

/** One request and its answer. */
class Exchange<T> {
  readonly #parts: ExchangeParts
  readonly #perform: () => T | Promise<T>
  readonly #resolve: (value: T) => void
  readonly #reject: (error: Error) => void
  #isOver = false

  constructor(
    parts: ExchangeParts,
    perform: () => T | Promise<T>,
    resolve: (value: T) => void,
    reject: (error: Error) => void,
  ) {
    this.#parts = parts
    this.#perform = perform
    this.#resolve = resolve
    this.#reject = reject
  }

  send(): void {
    const { life, request, timeline, latencyMs, note } = this.#parts
    if (life.isDead) return
    if (this.#has('lose-request')) {
      note(`${request.text}; the request is lost`)
      this.#fail(timeoutMs)
      return
    }
    const delay = this.#delayOf('delay-request')
    if (delay >= timeoutMs) this.#fail(timeoutMs)
    const incarnation = this.#parts.host.incarnation(request.service)
    timeline.after(latencyMs() + delay, () => this.#arrive(delay, incarnation))
  }

  #arrive(delayMs: number, incarnation: number): void {
    const { request, host, note } = this.#parts
    const late = delayMs > 0 ? ` (${delayMs} ms late)` : ''
    if (host.isDown(request.service) || host.incarnation(request.service) !== incarnation) {
      note(`${request.text}${late}; ${request.service} is down`)
      this.#fail(timeoutMs)
      return
    }
    note(`${request.text}${late}`)
    let answer: T | Promise<T>
    try {
      answer = this.#perform()
    } catch (error) {
      this.#answer(incarnation, () => this.#reject(asError(error)))
      return
    }
    host.done(this.#parts.life, request)
    if (!(answer instanceof Promise)) {
      const value = answer
      this.#answer(incarnation, () => this.#resolve(value))
      return
    }
    answer.then(
      value => this.#answer(incarnation, () => this.#resolve(value)),
      (error: unknown) => this.#answer(incarnation, () => this.#reject(asError(error))),
    )
  }

  #answer(incarnation: number, settle: () => void): void {
    const { request, host, timeline, latencyMs, note, life } = this.#parts
    if (this.#has('lose-answer')) {
      note(`the answer to “${request.text}” is lost`)
      this.#fail(timeoutMs)
      return
    }
    const delay = this.#delayOf('delay-answer')
    if (delay >= timeoutMs) this.#fail(timeoutMs)
    timeline.after(latencyMs() + delay, () => {
      if (host.incarnation(request.service) !== incarnation || host.isDown(request.service)) {
        this.#fail(0)
        return
      }
      life.deliver(() => this.#once(settle))
    })
  }

  /** The caller gives up waiting. */
  #fail(afterMs: number): void {
    const { life, request, timeline } = this.#parts
    timeline.after(afterMs, () => life.deliver(() => this.#once(() => this.#reject(request.lost()))))
  }

  #once(settle: () => void): void {
    if (this.#isOver) return
    this.#isOver = true
    settle()
  }

  #has(kind: Fault['kind']): boolean {
    return this.#parts.faults.some(fault => fault.kind === kind)
  }

  #delayOf(kind: Fault['kind']): number {
    return this.#parts.faults.find(fault => fault.kind === kind)?.ms ?? 0
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}
