// Membership of a consumer group over kafkajs' group requests, without its consumer: that one has no call for lost ownership,
// beats its heart only between fetches, spreads partitions of different topics independently and starts itself again silently.
import { setTimeout as sleep } from 'node:timers/promises'
import { WeirError, type JoinRequest, type Membership } from '@weir/core'
import type { Broker } from '../patches/kafkajs-client.ts'
import type { ClientContext } from './client-settings.ts'
import {
  decodeAssignment,
  decodeSubscription,
  encodeAssignment,
  encodeSubscription,
  protocolName,
} from './group-protocol.ts'
import { brokerError, protocolType } from './kafkajs-errors.ts'
import { isPassing, NodePool } from './node-pool.ts'
import { assignNumbers } from './number-assignor.ts'
import { retrying } from './retrying.ts'

const defaultSessionTimeoutMs = 20_000
const rebalanceTimeoutMs = 30_000
const retryDelayMs = 100
const firstJoin = { withinMs: 30_000, firstDelayMs: 100, maxDelayMs: 1_000 }

type Joined = Awaited<ReturnType<Broker['joinGroup']>>

export class GroupMembership implements Membership {
  readonly #context: ClientContext
  readonly #request: JoinRequest
  readonly #nodes: NodePool
  readonly #sessionTimeoutMs: number
  readonly #heartbeatIntervalMs: number
  readonly #stop = new AbortController()
  #coordinator: Broker | null = null
  #memberId = ''
  #generation = -1
  #numbers: readonly number[] = []
  #aliveAtMs = 0
  /** Set while the member joins; a proof waits for it. */
  #joining: Promise<void> | null = null
  #loop: Promise<void> = Promise.resolve()
  #isLost = false

  private constructor(context: ClientContext, request: JoinRequest) {
    this.#context = context
    this.#request = request
    this.#nodes = new NodePool(context)
    this.#sessionTimeoutMs = request.sessionTimeoutMs ?? defaultSessionTimeoutMs
    this.#heartbeatIntervalMs = Math.min(2_000, this.#sessionTimeoutMs / 3)
  }

  /** Resolves with the first assignment given. */
  static async join(context: ClientContext, request: JoinRequest): Promise<GroupMembership> {
    const membership = new GroupMembership(context, request)
    try {
      await retrying(firstJoin, () => membership.#join(), mayJoinAgain)
    } catch (error) {
      await membership.#nodes.close()
      throw brokerError(`let this member into group ${request.group}`, error, { group: request.group })
    }
    membership.#loop = membership.#stayMember()
    return membership
  }

  async prove(): Promise<void> {
    const { group } = this.#request
    const deadlineMs = performance.now() + this.#sessionTimeoutMs
    let cause: unknown = null
    while (!this.#isOver() && performance.now() < deadlineMs) {
      if (this.#joining) {
        await Promise.race([this.#joining, sleep(retryDelayMs)])
        continue
      }
      try {
        await this.#beat()
        return
      } catch (error) {
        const type = protocolType(error)
        // The coordinator checks the member before it says this, and counts it as a sign of life.
        if (type === 'REBALANCE_IN_PROGRESS') return
        cause = error
        if (!isPassing(error)) break
        this.#dropCoordinator()
      }
      await sleep(retryDelayMs)
    }
    throw new WeirError('membership_lost', `this instance could not show that it is still a member of group ${group}`, {
      cause,
      context: { group, memberId: this.#memberId, generation: this.#generation },
    })
  }

  async leave(): Promise<void> {
    if (this.#stop.signal.aborted) return this.#loop
    this.#stop.abort()
    const { group: groupId } = this.#request
    const memberId = this.#memberId
    try {
      // Not on the member's own connection: a join that waits for others would hold it back.
      const coordinator = await this.#nodes.node(await this.#nodes.coordinator(groupId))
      if (memberId !== '') await coordinator.leaveGroup({ groupId, memberId })
    } catch (error) {
      this.#context.log.debug({ err: error, group: groupId }, 'leaving the group failed; its session will run out')
    }
    this.#dropCoordinator()
    await this.#loop
    await this.#nodes.close()
  }

  #isOver(): boolean {
    return this.#isLost || this.#stop.signal.aborted
  }

  async #stayMember(): Promise<void> {
    while (!this.#isOver()) {
      try {
        await sleep(this.#heartbeatIntervalMs, undefined, { signal: this.#stop.signal })
        await this.#beat()
      } catch (error) {
        if (this.#isOver()) return
        await this.#recover(error)
      }
    }
  }

  /** After a failed heartbeat or join; never throws. */
  async #recover(error: unknown): Promise<void> {
    const { log } = this.#context
    const { group } = this.#request
    const type = protocolType(error)
    if (type === 'UNKNOWN_MEMBER_ID' || type === 'ILLEGAL_GENERATION') {
      log.warn({ group, memberId: this.#memberId, type }, 'thrown out of the group; joining again')
      this.#giveUpNumbers()
      this.#memberId = ''
    } else if (type !== 'REBALANCE_IN_PROGRESS') {
      if (!isPassing(error)) return this.#lose(error)
      this.#dropCoordinator()
      const silentMs = performance.now() - this.#aliveAtMs
      if (silentMs > this.#sessionTimeoutMs) this.#giveUpNumbers()
      await sleep(retryDelayMs)
      // The coordinator may only have moved: it still knows the member, unless a heartbeat says otherwise.
      if (this.#memberId !== '' && (await this.#beatsAgain())) return
    }
    try {
      await this.#join()
    } catch (joinError) {
      if (this.#isOver()) return
      if (!mayJoinAgain(joinError)) return this.#lose(joinError)
      log.debug({ err: joinError, group }, 'joining the group failed; trying again')
      if (protocolType(joinError) === 'UNKNOWN_MEMBER_ID') this.#memberId = ''
      if (protocolType(joinError) === null) this.#dropCoordinator()
      await sleep(retryDelayMs)
      // The next heartbeat fails at once and brings the member here again.
    }
  }

  async #beatsAgain(): Promise<boolean> {
    try {
      await this.#beat()
      return true
    } catch (error) {
      if (protocolType(error) === 'UNKNOWN_MEMBER_ID') this.#memberId = ''
      return false
    }
  }

  async #beat(): Promise<void> {
    const groupId = this.#request.group
    const startedAtMs = performance.now()
    const coordinator = await this.#connect()
    await coordinator.heartbeat({ groupId, groupGenerationId: this.#generation, memberId: this.#memberId })
    this.#aliveAtMs = startedAtMs
  }

  #join(): Promise<void> {
    const joining = this.#joinAndSync().finally(() => {
      this.#joining = null
    })
    // A proof waits for this one too; whoever called gets the error.
    this.#joining = joining.catch(() => undefined)
    return joining
  }

  async #joinAndSync(): Promise<void> {
    const { group, topics } = this.#request
    const coordinator = await this.#connect()
    const owned = { numbers: this.#numbers, generation: this.#generation }
    const joined = await coordinator.joinGroup({
      groupId: group,
      sessionTimeout: this.#sessionTimeoutMs,
      rebalanceTimeout: rebalanceTimeoutMs,
      memberId: this.#memberId,
      groupProtocols: [{ name: protocolName, metadata: encodeSubscription(topics, owned) }],
    })
    this.#memberId = joined.memberId
    this.#generation = joined.generationId
    const { memberAssignment } = await coordinator.syncGroup({
      groupId: group,
      generationId: joined.generationId,
      memberId: joined.memberId,
      groupAssignment: joined.leaderId === joined.memberId ? await this.#assign(joined) : [],
    })
    this.#aliveAtMs = performance.now()
    if (this.#isOver()) return
    this.#numbers = decodeAssignment(memberAssignment)
    this.#context.log.info(
      { group, numbers: this.#numbers, generation: this.#generation },
      'partition numbers assigned',
    )
    this.#request.onAssigned({ numbers: this.#numbers, generation: this.#generation })
  }

  async #assign(joined: Joined) {
    const claims = joined.members.map(({ memberId, memberMetadata }) => decodeSubscription(memberId, memberMetadata))
    const allTopics = [...new Set(claims.flatMap(({ topics }) => topics))]
    const { topics: found } = await this.#nodes.metadata(allTopics)
    const counts = new Map(found.map(({ topic, partitions }) => [topic, partitions.length]))
    const numbers = assignNumbers(Math.max(0, ...counts.values()), claims)
    return claims.map(({ memberId, topics }) => {
      const ofMember = new Map(topics.map(topic => [topic, counts.get(topic) ?? 0]))
      return { memberId, memberAssignment: encodeAssignment(numbers.get(memberId) ?? [], ofMember) }
    })
  }

  async #connect(): Promise<Broker> {
    if (this.#coordinator?.isConnected()) return this.#coordinator
    this.#dropCoordinator()
    const coordinator = await this.#nodes.dedicated(await this.#nodes.coordinator(this.#request.group))
    this.#coordinator = coordinator
    return coordinator
  }

  #dropCoordinator(): void {
    if (this.#coordinator) this.#nodes.drop(this.#coordinator)
    this.#coordinator = null
  }

  /** The session has certainly run out: others own the numbers now. */
  #giveUpNumbers(): void {
    if (this.#numbers.length === 0) return
    this.#numbers = []
    this.#request.onAssigned({ numbers: [], generation: this.#generation })
  }

  #lose(error: unknown): void {
    this.#isLost = true
    this.#dropCoordinator()
    this.#giveUpNumbers()
    this.#request.onLost(brokerError(`keep this member in group ${this.#request.group}`, error))
  }
}

function mayJoinAgain(error: unknown): boolean {
  const type = protocolType(error) ?? ''
  return isPassing(error) || ['REBALANCE_IN_PROGRESS', 'UNKNOWN_MEMBER_ID', 'ILLEGAL_GENERATION'].includes(type)
}
