// What the parts of a simulated world know of each other, and how a sabotage takes one rule away: by wrapping a port, or by replacing
// one answer of a stand-in. Production code knows nothing of it.
import type { Broker, Ownership, OwnerStore, StageHandler, TopicNames } from '@weir/core'
import type { DedupOptions } from '@weir/dedup'
import type { SimulatedCluster, StageOptions } from '@weir/kafka'
import type { PolicyOptions } from '@weir/policy'
import type { Journal } from './journal.ts'
import type { Monitor } from './monitor.ts'
import type { Life, Network } from './network.ts'
import type { Scenario, StageName } from './scenario.ts'
import type { ClaimModel } from './stand-ins/claim-model.ts'
import type { ObjectCodec } from './stand-ins/codec.ts'
import type { Gcra } from './stand-ins/gcra.ts'
import type { OwnerModel } from './stand-ins/owner-model.ts'
import type { DeliveryModel } from './stand-ins/delivery-model.ts'
import type { PolicyModel } from './stand-ins/policy-model.ts'
import type { Tables } from './stand-ins/tables.ts'
import type { Timeline } from './timeline.ts'

/** The world as its parts see it. */
export interface World {
  readonly scenario: Scenario
  readonly alter: Alterations
  readonly timeline: Timeline
  readonly journal: Journal
  readonly network: Network
  readonly cluster: SimulatedCluster
  readonly topics: TopicNames
  readonly codec: ObjectCodec
  readonly tables: Tables
  readonly monitor: Monitor
  readonly owners: OwnerModel
  readonly claims: ClaimModel
  readonly policy: PolicyModel
  readonly deliveries: DeliveryModel
  readonly gcra: Gcra
  readonly agents: readonly string[]
  note(who: string, what: string): void
  explain(who: string, fields: object, message: string): void
  /** Performs a write of an owner, and notes when a former one changed a row. */
  asOwner<T>(life: Life, ownership: Ownership, perform: () => T): T
}

/** What is altered of one instance. Each is called once per start of an instance. */
export interface Alterations {
  broker?(broker: Broker, place: Place): Broker
  stage?(options: StageOptions, place: Place): readonly StageOptions[]
  handler?(handler: StageHandler, place: Place): StageHandler
  owners?(owners: OwnerStore, place: Place): OwnerStore
  dedup?(options: DedupOptions, place: Place): DedupOptions
  policy?(options: PolicyOptions, place: Place): PolicyOptions
  ownerModel?(model: OwnerModel, world: World): OwnerModel
  claimModel?(model: ClaimModel, world: World): ClaimModel
  policyModel?(model: PolicyModel, world: World): PolicyModel
  /** Partition a sender appends to, by the event's key text and its ordering key. */
  partitionOf?(orderingKey: string, eventKey: string, partitions: number): number
}

/** Where an alteration stands. */
export interface Place {
  readonly world: World
  readonly stage: StageName
  /** Name of the instance; the same over its lives. */
  readonly instance: string
}
