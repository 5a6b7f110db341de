// The rows that the SQL functions of packages/postgres/migrations work on. Rows are never changed, only replaced: a copy of the
// tables is a copy of their maps.
import type { LogPosition } from '@weir/core'
import type { BusinessClaim, OpenDelivery, StoredOutcome, StoredVerdict } from './ports.ts'

export interface ClaimRow {
  readonly eventKey: Buffer
  readonly deliveryId: string
  readonly logId: string
  readonly partition: number
  readonly offset: number
  readonly payloadDigest: Buffer
  readonly appendedAtMs: number
}

export interface BusinessRow extends BusinessClaim {
  readonly eventKey: string
}

export interface OwnerRow {
  readonly epoch: bigint
}

export interface BudgetRow {
  readonly budget: string
  readonly windowStartMs: number
  readonly used: number
}

export interface ChargeRow {
  readonly chargeId: string
  readonly budget: string
  readonly windowStartMs: number
  readonly amount: number
  readonly attempt: number
  readonly voidedAtMs: number | null
}

export interface WaitingRow {
  readonly decisionId: string
  readonly agent: string
  readonly orderingKey: string
  readonly tenant: string
  readonly partition: number
  readonly logId: string
  readonly offset: number
  readonly event: Buffer
  readonly notBeforeMs: number | null
  readonly rateReserved: boolean
  readonly nextAttempt: number
  readonly releasedAttempt: number
  readonly releasedAtMs: number | null
  readonly endedAttempt: number | null
  readonly eventKey: Buffer
  readonly cause: 'due' | 'again'
}

export interface DeliveryRow extends OpenDelivery {
  readonly tenant: string
  readonly orderingKey: string
  readonly eventKey: Buffer
  readonly overdueAtMs: number
  readonly overdueProducedAtMs: number | null
  readonly ended: { readonly logId: string; readonly offset: number } | null
}

export interface VersionRow {
  readonly kind: string
  readonly version: number
}

/** Tells how often anything was written. */
export class Table<Row> extends Map<string, Row> {
  readonly #wrote: () => void

  constructor(wrote: () => void, rows: Iterable<readonly [string, Row]> = []) {
    super()
    this.#wrote = wrote
    for (const [key, row] of rows) super.set(key, row)
  }

  override set(key: string, row: Row): this {
    this.#wrote()
    return super.set(key, row)
  }

  override delete(key: string): boolean {
    this.#wrote()
    return super.delete(key)
  }
}

/** One map per table; keys are the primary keys as text. */
export class Tables {
  #writes = 0
  readonly #wrote = (): void => void this.#writes++
  owners = new Table<OwnerRow>(this.#wrote)
  positions = new Table<LogPosition & { readonly stage: string; readonly partition: number }>(this.#wrote)
  claims = new Table<ClaimRow>(this.#wrote)
  business = new Table<BusinessRow>(this.#wrote)
  /** By decision and attempt; `override` is in a table of its own. */
  verdicts = new Table<StoredVerdict>(this.#wrote)
  overrides = new Table<{ readonly code: string; readonly detail: string }>(this.#wrote)
  budgets = new Table<BudgetRow>(this.#wrote)
  charges = new Table<ChargeRow>(this.#wrote)
  waiting = new Table<WaitingRow>(this.#wrote)
  deliveries = new Table<DeliveryRow>(this.#wrote)
  /** By decision, attempt and kind. */
  outcomes = new Table<StoredOutcome>(this.#wrote)
  /** By agent and ordering key. */
  versions = new Table<VersionRow>(this.#wrote)

  /** Rows written or deleted so far. */
  get writes(): number {
    return this.#writes
  }

  copy(): Tables {
    const made = new Tables()
    made.restore(this)
    return made
  }

  /** Becomes what `older` holds. */
  restore(older: Tables): void {
    this.owners = new Table(this.#wrote, older.owners)
    this.positions = new Table(this.#wrote, older.positions)
    this.claims = new Table(this.#wrote, older.claims)
    this.business = new Table(this.#wrote, older.business)
    this.verdicts = new Table(this.#wrote, older.verdicts)
    this.overrides = new Table(this.#wrote, older.overrides)
    this.budgets = new Table(this.#wrote, older.budgets)
    this.charges = new Table(this.#wrote, older.charges)
    this.waiting = new Table(this.#wrote, older.waiting)
    this.deliveries = new Table(this.#wrote, older.deliveries)
    this.outcomes = new Table(this.#wrote, older.outcomes)
    this.versions = new Table(this.#wrote, older.versions)
  }
}

export const ownerKey = (stage: string, partition: number): string => `${stage}/${partition}`
export const positionKey = (stage: string, partition: number, topic: string, logId: string): string =>
  `${stage}/${partition}/${topic}/${logId}`
export const attemptKey = ({
  decisionId,
  attempt,
}: {
  readonly decisionId: string
  readonly attempt: number
}): string => `${decisionId}:${attempt}`
export const budgetKey = (budget: string, windowStartMs: number): string => `${budget}\n${windowStartMs}`

export function withOverride(tables: Tables, row: StoredVerdict): StoredVerdict {
  const delivery = tables.deliveries.get(row.decisionId)
  return {
    ...row,
    override: tables.overrides.get(attemptKey(row)) ?? null,
    delivery:
      delivery === undefined
        ? null
        : {
            number: delivery.deliveries,
            maxAttempts: delivery.maxAttempts,
            backoffMs: delivery.backoffMs,
            deadlineMs: delivery.deadlineMs,
          },
  }
}

/** Adds to what is used of a budget. */
export function use(
  tables: Tables,
  of: { readonly budget: string; readonly windowStartMs: number },
  amount: number,
): void {
  const key = budgetKey(of.budget, of.windowStartMs)
  const used = (tables.budgets.get(key)?.used ?? 0) + amount
  tables.budgets.set(key, { budget: of.budget, windowStartMs: of.windowStartMs, used })
}
