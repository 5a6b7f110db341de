// A simulated consumer group with the same assignor as the real one.
import { WeirError, type JoinRequest, type Membership } from '@weir/core'
import { assignNumbers } from '../adapter/number-assignor.ts'
import type { Scheduler } from './scheduler.ts'

const defaultSessionTimeoutMs = 20_000
const heartbeatMs = 2_000
const ignore = () => undefined

/** Whether the process of a member runs; a frozen one hears nothing and shows no sign of life. */
export interface ProcessState {
  readonly isFrozen: boolean
  /** Resolves when it runs again. */
  thawed(): Promise<void>
}

interface Member {
  readonly id: string
  readonly request: JoinRequest
  readonly process: ProcessState
  numbers: readonly number[]
  generation: number
  stopTimer: () => void
  /** Enters the group again after the member was thrown out. */
  rejoin: () => void
}

export class SimulatedGroup {
  readonly #group: string
  readonly #scheduler: Scheduler
  readonly #partitionsOf: (topic: string) => number
  readonly #members = new Map<string, Member>()
  /** Thrown out and not back yet. */
  readonly #evicted = new Set<Member>()
  #generation = 0
  #joined = 0

  constructor(group: string, scheduler: Scheduler, partitionsOf: (topic: string) => number) {
    this.#group = group
    this.#scheduler = scheduler
    this.#partitionsOf = partitionsOf
  }

  get memberIds(): readonly string[] {
    return [...this.#members.keys()]
  }

  join(request: JoinRequest, process: ProcessState): Membership {
    const missing = request.topics.find(topic => this.#partitionsOf(topic) === 0)
    if (missing !== undefined) throw new WeirError('topic_missing', `topic ${missing} is not on the broker`)
    let member = this.#enter(request, process)
    let hasLeft = false
    const rejoin = () => {
      if (hasLeft || this.#members.has(member.id)) return
      this.#evicted.delete(member)
      request.onAssigned({ numbers: [], generation: member.generation })
      member = this.#enter(request, process)
      member.rejoin = rejoin
    }
    member.rejoin = rejoin
    return {
      prove: async () => {
        if (process.isFrozen) await process.thawed()
        if (this.#members.has(member.id)) return
        rejoin()
        throw new WeirError('membership_lost', `this instance is no longer a member of group ${this.#group}`)
      },
      leave: async () => {
        hasLeft = true
        await Promise.resolve()
        this.#evicted.delete(member)
        this.#remove(member)
      },
    }
  }

  /** The coordinator throws a member out, as after a session without heartbeats; it joins again at its next heartbeat. */
  evict(memberId: string): void {
    const member = this.#members.get(memberId)
    if (!member) return
    this.#remove(member)
    this.#evicted.add(member)
    // One that is frozen by then comes back when it runs again.
    this.#scheduler.after(heartbeatMs, () => {
      if (!member.process.isFrozen) member.rejoin()
    })
  }

  /** For the simulator: the process froze, so its session runs out. */
  froze(process: ProcessState): void {
    for (const member of this.#members.values()) {
      if (member.process !== process) continue
      const sessionMs = member.request.sessionTimeoutMs ?? defaultSessionTimeoutMs
      member.stopTimer = this.#scheduler.after(sessionMs, () => this.evict(member.id))
    }
  }

  /** For the simulator: the process runs again; what it missed it hears now. */
  thawed(process: ProcessState): void {
    for (const member of this.#members.values()) {
      if (member.process !== process) continue
      member.stopTimer()
      this.#tell(member)
    }
    for (const member of this.#evicted) if (member.process === process) member.rejoin()
  }

  #enter(request: JoinRequest, process: ProcessState): Member {
    const id = `${this.#group}-${this.#joined++}`
    const member: Member = { id, request, process, numbers: [], generation: -1, stopTimer: ignore, rejoin: ignore }
    this.#members.set(id, member)
    this.#rebalance()
    return member
  }

  #remove(member: Member): void {
    if (!this.#members.delete(member.id)) return
    member.stopTimer()
    this.#rebalance()
  }

  #rebalance(): void {
    if (this.#members.size === 0) return
    this.#generation++
    const members = [...this.#members.values()]
    const topics = new Set(members.flatMap(({ request }) => request.topics))
    const count = Math.max(0, ...[...topics].map(topic => this.#partitionsOf(topic)))
    const claims = members.map(({ id, numbers, generation }) => ({ memberId: id, numbers, generation }))
    const assignment = assignNumbers(count, claims)
    for (const member of members) {
      member.numbers = assignment.get(member.id) ?? []
      member.generation = this.#generation
    }
    for (const member of members) if (!member.process.isFrozen) this.#tell(member)
  }

  #tell(member: Member): void {
    member.request.onAssigned({ numbers: member.numbers, generation: member.generation })
  }
}
