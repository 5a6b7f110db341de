// How requests of a simulated process reach its cluster. The one wire knows the faults a test asks for by name; another one may
// let a scheduler decide when each request and each answer arrives, and whether.
import { WeirError } from '@weir/core'
import type { FaultPoint, Faults } from './faults.ts'
import type { ProcessState } from './simulated-group.ts'

export type RequestKind = FaultPoint | 'admin' | 'fetch' | 'open' | 'partitions' | 'join'

export interface WireRequest {
  readonly kind: RequestKind
  /** Transactional id it is made for; empty where there is none. */
  readonly who: string
  /** What is asked, for people. */
  readonly text: string
}

export interface Wire {
  /**
   * Has the cluster do `perform` and resolves with its answer. Rejects with what it threw, or with a `broker_unavailable` that
   * `isLost` recognises: then it may have been done or not.
   */
  call<T>(request: WireRequest, perform: () => T | Promise<T>): Promise<T>
}

const lostMark = { lostAnswer: true } as const

export function lostAnswer(what: string): WeirError {
  return new WeirError('broker_unavailable', `no answer came to ${what}`, { context: lostMark })
}

export function isLost(error: unknown): boolean {
  return error instanceof WeirError && error.context['lostAnswer'] === true
}

const faultPoints: ReadonlySet<string> = new Set<FaultPoint>(['append', 'offsets', 'commit', 'publish'])

/** Nothing waits, except while the process is frozen or a test holds the point. */
export class DirectWire implements Wire {
  readonly #faults: Faults
  readonly #process: ProcessState

  constructor(faults: Faults, process: ProcessState) {
    this.#faults = faults
    this.#process = process
  }

  async call<T>(request: WireRequest, perform: () => T | Promise<T>): Promise<T> {
    if (isFaultPoint(request.kind)) return this.#strike(request.kind, request, perform)
    await this.#ready()
    const answer = perform()
    if (!(answer instanceof Promise)) return answer
    const later = await answer
    await this.#ready()
    return later
  }

  async #strike<T>(at: FaultPoint, { who, text }: WireRequest, perform: () => T | Promise<T>): Promise<T> {
    if (at === 'publish') await this.#ready()
    const strike = await this.#faults.pass(at, who)
    if (this.#process.isFrozen) await this.#process.thawed()
    if (at === 'publish' && this.#faults.isDown) throw down()
    if (strike === 'lost-request') throw lostAnswer(text)
    const answer = await perform()
    if (strike !== null) throw lostAnswer(text)
    return answer
  }

  async #ready(): Promise<void> {
    while (this.#process.isFrozen) await this.#process.thawed()
    if (this.#faults.isDown) throw down()
  }
}

function isFaultPoint(kind: RequestKind): kind is FaultPoint {
  return faultPoints.has(kind)
}

function down(): WeirError {
  return new WeirError('broker_unavailable', 'the simulated cluster is down')
}
