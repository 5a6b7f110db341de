// A whole installation in one thread: cluster, Postgres, instances, senders, and what goes wrong.
import { topicNames, type Ownership } from '@weir/core'
import { SimulatedCluster } from '@weir/kafka'
import { checkCommit } from './invariants/log-checks.ts'
import { Instance } from './instance.ts'
import { Journal } from './journal.ts'
import { Monitor } from './monitor.ts'
import { Network, type Life, type NetworkHost, type Request, type Service } from './network.ts'
import { Random } from './random.ts'
import type { Alterations, World } from './context.ts'
import type { Fault, Scenario } from './scenario.ts'
import { worldFaults } from './scenario.ts'
import { Senders } from './senders.ts'
import { createClaimModel, type ClaimModel } from './stand-ins/claim-model.ts'
import { ObjectCodec } from './stand-ins/codec.ts'
import { createOwnerModel, type OwnerModel } from './stand-ins/owner-model.ts'
import { createDeliveryModel, type DeliveryModel } from './stand-ins/delivery-model.ts'
import { createPolicyModel, type PolicyModel } from './stand-ins/policy-model.ts'
import { Gcra } from './stand-ins/gcra.ts'
import { Tables } from './stand-ins/tables.ts'
import { startMs, Timeline } from './timeline.ts'

const transactionTimeoutMs = 1_500
const keptCopies = 24

export class SimulatedWorld implements World, NetworkHost {
  readonly scenario: Scenario
  readonly alter: Alterations
  readonly timeline = new Timeline()
  readonly journal: Journal
  readonly network: Network
  readonly cluster: SimulatedCluster
  readonly topics = topicNames('')
  readonly codec = new ObjectCodec()
  readonly tables = new Tables()
  readonly monitor = new Monitor()
  readonly owners: OwnerModel
  readonly claims: ClaimModel
  readonly policy: PolicyModel
  readonly deliveries: DeliveryModel
  readonly gcra = new Gcra()
  readonly instances: Instance[] = []
  readonly senders: Senders
  readonly agents: readonly string[]
  readonly #faults: Map<number, Fault[]>
  readonly #needsCopies: boolean
  #copies: Tables[] = []
  #downUntilMs = { kafka: 0, postgres: 0, redis: 0 }
  #postgresIncarnation = 0
  #lastFaultMs = startMs

  constructor(scenario: Scenario, options: { readonly alter?: Alterations; readonly keepsLines?: boolean } = {}) {
    this.scenario = scenario
    this.alter = options.alter ?? {}
    this.journal = new Journal({ keepsLines: options.keepsLines ?? false })
    const random = new Random(scenario.seed + 1)
    this.network = new Network(this.timeline, this.journal, { random, jitterMs: scenario.jitterMs }, this)
    this.cluster = new SimulatedCluster(this.timeline, { transactionTimeoutMs })
    const owners = createOwnerModel(this.tables)
    this.owners = this.alter.ownerModel?.(owners, this) ?? owners
    const claims = createClaimModel(this.tables, this.owners)
    this.claims = this.alter.claimModel?.(claims, this) ?? claims
    const policy = createPolicyModel(this.tables, this.owners, () => this.timeline.nowMs())
    this.deliveries = createDeliveryModel(this.tables, this.owners, () => this.timeline.nowMs())
    this.policy = this.alter.policyModel?.(policy, this) ?? policy
    this.agents = Array.from({ length: scenario.agents }, (_, i) => `agent-${i}`)
    this.#faults = byPoint(scenario.faults)
    this.#needsCopies = scenario.faults.some(({ kind }) => kind === 'postgres-restored')
    this.#createTopics()
    this.senders = new Senders(this)
    for (const stage of scenario.stages) {
      for (let i = 0; i < scenario.instances; i++)
        this.instances.push(new Instance(this, stage, `${stage}-${'abc'[i]}`))
    }
  }

  start(): void {
    for (const instance of this.instances) instance.start()
    this.senders.start()
  }

  note(who: string, what: string): void {
    this.network.note(who, what)
  }

  explain(who: string, fields: object, message: string): void {
    this.journal.explain(() => {
      const alarm = 'alarm' in fields ? ` (alarm ${String(fields.alarm)})` : ''
      const error = 'err' in fields && fields.err instanceof Error ? `: ${fields.err.message}` : ''
      return `            ${who} says: ${message}${alarm}${error}`
    })
  }

  /** When the last fault was over, or will be. */
  get healedAtMs(): number {
    return Math.max(this.#lastFaultMs, ...Object.values(this.#downUntilMs))
  }

  /** Invariant 4: whoever has an old epoch changes no row. */
  asOwner<T>(life: Life, ownership: Ownership, perform: () => T): T {
    const before = this.tables.writes
    const answer = perform()
    if (this.tables.writes !== before && !this.monitor.isOwner(ownership)) {
      const { stage, partition, epoch } = ownership
      this.monitor.violate(
        'a former owner writes nothing',
        `${life.name} wrote as owner ${epoch} of ${stage} ${partition}`,
      )
    }
    this.monitor.checkPositions(this.tables)
    if (this.#needsCopies) this.#copies = [...this.#copies.slice(1 - keptCopies), this.tables.copy()]
    return answer
  }

  strike(point: number): readonly Fault[] {
    const faults = this.#faults.get(point)
    if (faults === undefined) return []
    for (const fault of faults) {
      this.#lastFaultMs = Math.max(this.#lastFaultMs, this.timeline.nowMs() + fault.ms)
      const kind = worldFaults.find(each => each === fault.kind)
      if (kind !== undefined) this.#apply(kind, fault)
    }
    return faults
  }

  isDown(service: Service): boolean {
    return this.timeline.nowMs() < this.#downUntilMs[service]
  }

  incarnation(service: Service): number {
    return service === 'postgres' ? this.#postgresIncarnation : 0
  }

  kill(life: Life): boolean {
    const instance = this.instances.find(each => each.life === life)
    instance?.kill()
    return instance !== undefined
  }

  freeze(life: Life, ms: number): void {
    this.instances.find(instance => instance.life === life)?.freeze(ms)
  }

  done(_life: Life, request: Request): void {
    if (request.kind === 'commit') checkCommit(this)
  }

  #createTopics(): void {
    const { raw, events, released, outcomes, dedupState, decisions, parked, agentPrefix } = this.topics
    const { partitions } = this.scenario
    const names = [raw, events, released, outcomes, dedupState, decisions, parked]
    for (const topic of names) this.cluster.createTopic({ topic, partitions })
    for (const agent of this.agents) this.cluster.createTopic({ topic: `${agentPrefix}${agent}`, partitions })
  }

  #apply(kind: (typeof worldFaults)[number], { which, ms }: Fault): void {
    const instance = this.instances[which % this.instances.length]
    switch (kind) {
      case 'kill':
        return instance?.kill()
      case 'freeze':
        return instance?.freeze(ms)
      case 'stop':
        return instance?.stop()
      case 'evict':
        return this.#evict(which)
      case 'join':
        return this.#join(which, ms)
      case 'offsets-lost':
      case 'offsets-back':
        return this.#loseOffsets(kind, which)
      case 'postgres-restored':
        return this.#restorePostgres(which)
      case 'postgres-down':
        return this.#goDown('postgres', ms)
      case 'kafka-down':
        return this.#goDown('kafka', ms)
      case 'redis-down':
        return this.#goDown('redis', ms)
      case 'redis-emptied':
        this.note('redis', 'is emptied')
        return this.gcra.forget()
      case 'caches-emptied':
        this.note('all instances', 'lose their caches')
        for (const each of this.instances) each.forget()
        return undefined
      case 'clock-jump':
        this.note(instance?.name ?? '', `has its clock set ${which % 2 === 0 ? 'forward' : 'back'} by an hour`)
        return instance?.jumpClock(which % 2 === 0 ? 3_600_000 : -3_600_000)
      case 'copy':
        return this.senders.copy(which)
      case 'partial-append':
        this.note('kafka', 'will append the first batch of a request only')
        return this.cluster.faults.cutNextAppend()
    }
  }

  #goDown(service: Service, ms: number): void {
    this.note(service, `is down for ${ms} ms`)
    this.#downUntilMs[service] = Math.max(this.#downUntilMs[service], this.timeline.nowMs() + ms)
    if (service === 'postgres') for (const instance of this.instances) instance.storeLost()
  }

  #evict(which: number): void {
    const stage = this.scenario.stages[which % this.scenario.stages.length] ?? 'dedup'
    const group = this.cluster.group(stage)
    const member = group.memberIds[which % Math.max(1, group.memberIds.length)]
    if (member === undefined) return
    this.note('kafka', `throws member ${member} out of its group`)
    group.evict(member)
  }

  /** One more instance comes, and goes again. */
  #join(which: number, ms: number): void {
    const stage = this.scenario.stages[which % this.scenario.stages.length] ?? 'dedup'
    const guest = new Instance(this, stage, `${stage}-guest${this.instances.length}`)
    this.instances.push(guest)
    guest.start()
    const leave = (): void => {
      guest.stop({ forGood: true })
    }
    this.timeline.after(ms, leave)
  }

  #loseOffsets(kind: 'offsets-lost' | 'offsets-back', which: number): void {
    const stage = this.scenario.stages[which % this.scenario.stages.length] ?? 'dedup'
    const inputs = stage === 'dedup' ? [this.topics.raw] : [this.topics.events, this.topics.released]
    for (const topic of inputs) {
      for (let partition = 0; partition < this.scenario.partitions; partition++) {
        const committed = this.cluster.committedOffset(stage, { topic, partition })
        if (committed === null) continue
        const now = kind === 'offsets-lost' ? null : Math.max(0, committed - 1 - (which % 3))
        this.note(
          'kafka',
          `group ${stage} has offset ${now ?? 'none'} of ${topic}-${partition} instead of ${committed}`,
        )
        this.cluster.setCommittedOffset(stage, { topic, partition }, now)
      }
    }
  }

  /** As the runbook says: with all stopped, then all are started again. */
  #restorePostgres(which: number): void {
    const older = this.#copies.at(-1 - (which % 4) * 4) ?? this.#copies[0]
    if (older === undefined) return
    this.note('postgres', 'is restored without its last commits, while all are stopped')
    for (const instance of this.instances) instance.kill()
    this.tables.restore(older)
    this.#copies = []
    this.#postgresIncarnation++
    this.monitor.postgresRestored(this.tables)
  }
}

function byPoint(faults: readonly Fault[]): Map<number, Fault[]> {
  const points = new Map<number, Fault[]>()
  for (const fault of faults) points.set(fault.at, [...(points.get(fault.at) ?? []), fault])
  return points
}
