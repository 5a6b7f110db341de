// What is known of a run beside what the stores hold: needed to tell whether a rule was kept.
import type { Ownership } from '@weir/core'
import type { Tables } from './stand-ins/tables.ts'

/** One accepted or attempted delivery. */
export interface Sent {
  readonly number: number
  readonly event: number
  readonly eventKey: string
  readonly orderingKey: string
  readonly deliveryId: string
  readonly isReadable: boolean
  readonly isMisplaced: boolean
  readonly business: number | null
  readonly sentAtStep: number
  /** Null while no answer has come. */
  ackedAtStep: number | null
  offset: number | null
  partition: number
  logId: string
}

export interface Violation {
  /** Name of the invariant. */
  readonly invariant: string
  readonly detail: string
}

export class Monitor {
  readonly sent: Sent[] = []
  readonly violations: Violation[] = []
  /** Postgres was set back at least once. */
  wasRestored = false
  /** Highest offset ever known committed: group, topic, partition and log. */
  readonly committedHigh = new Map<string, number>()
  readonly #epochs = new Map<string, bigint>()
  readonly #emittedBelow = new Map<string, number>()

  violate(invariant: string, detail: string): void {
    this.violations.push({ invariant, detail })
  }

  tookOver({ stage, partition, epoch }: Ownership): void {
    const key = `${stage}/${partition}`
    const before = this.#epochs.get(key) ?? 0n
    if (epoch <= before) this.violate('take-overs raise the epoch', `${key} went from ${before} to ${epoch}`)
    this.#epochs.set(key, epoch)
  }

  isOwner({ stage, partition, epoch }: Ownership): boolean {
    return this.#epochs.get(`${stage}/${partition}`) === epoch
  }

  noteCommitted(key: string, offset: number | null): void {
    if (offset !== null) this.committedHigh.set(key, Math.max(offset, this.committedHigh.get(key) ?? 0))
  }

  /** Invariant 3: positions never fall, and never exceed what was committed. */
  checkPositions(tables: Tables): void {
    for (const [key, row] of tables.positions) {
      const before = this.#emittedBelow.get(key) ?? 0
      if (row.emittedBelow < before) {
        this.violate('emitted_below never falls', `${key} fell from ${before} to ${row.emittedBelow}`)
      }
      this.#emittedBelow.set(key, row.emittedBelow)
      const high = this.committedHigh.get(`${row.stage}/${row.topic}/${row.partition}/${row.logId}`) ?? 0
      if (row.emittedBelow > high) {
        this.violate(
          'emitted_below never exceeds what was committed',
          `${key} is ${row.emittedBelow}, committed ${high}`,
        )
      }
    }
  }

  /** Postgres is an older one now: what was known of it holds no longer. */
  postgresRestored(tables: Tables): void {
    this.wasRestored = true
    this.#emittedBelow.clear()
    this.#epochs.clear()
    for (const [key, row] of tables.positions) this.#emittedBelow.set(key, row.emittedBelow)
    for (const [key, { epoch }] of tables.owners) this.#epochs.set(key, epoch)
  }
}
