// For tests: policy on a database of its own and the Redis of REDIS_URL, as a service would be wired.
import { randomBytes } from 'node:crypto'
import { formatUuid, type BudgetConfiguration, type Log, type RouteConfiguration } from '@weir/core'
import { createCodec, pushSchemas, type Codec } from '@weir/kafka'
import { createOwnerStore, openDatabase, type Database } from '@weir/postgres'
import { createMetrics } from '@weir/runtime'
import { Redis } from 'ioredis'
import { createPolicyMetrics } from '../../metrics.ts'
import { createAvroPolicyCodec } from '../avro-policy-codec.ts'
import { PostgresDeliveryLedger } from '../postgres-delivery-ledger.ts'
import { PostgresPolicyLedger } from '../postgres-policy-ledger.ts'
import { RedisRateLimiter } from '../redis-rate-limiter.ts'
import { deliveryIdOf, PartitionBench, type BenchOptions } from './partition-bench.ts'

const silent: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => silent }

export const toTriage: RouteConfiguration = {
  name: 'all',
  tenant: 'acme',
  sources: ['github'],
  types: ['*'],
  agents: ['triage'],
  maxAttempts: 3,
  backoffSeconds: 10,
  deadlineSeconds: 60,
}

export interface World {
  readonly budgets?: readonly BudgetConfiguration[]
  readonly routes?: readonly RouteConfiguration[]
  readonly reporting?: readonly string[]
}

export interface Places {
  readonly adminUrl: string
  readonly policyUrl: string
  readonly redisUrl: string
  readonly registryUrl: string
}

export async function createPolicyFixture(places: Places): Promise<PolicyFixture> {
  await pushSchemas({ registryUrl: places.registryUrl })
  const codec = await createCodec({ registryUrl: places.registryUrl, log: silent })
  const fixture = new PolicyFixture(places, codec)
  await fixture.limiter.warmUp()
  return fixture
}

export class PolicyFixture {
  readonly #codec: Codec
  readonly #db: Database
  readonly #redis: Redis
  readonly #keyPrefix = `policy-test-${randomBytes(4).toString('hex')}.`
  readonly admin: Database
  readonly limiter: RedisRateLimiter
  #lastNumber = 0
  #nowMs = 0

  constructor(places: Places, codec: Codec) {
    this.#codec = codec
    this.#db = openDatabase({ url: places.policyUrl, applicationName: 'policy test' })
    this.admin = openDatabase({ url: places.adminUrl, applicationName: 'policy test admin', maxConnections: 2 })
    this.#redis = new Redis(places.redisUrl)
    this.limiter = this.limiterAt(places.redisUrl)
  }

  limiterAt(redisUrl: string): RedisRateLimiter {
    const metrics = createPolicyMetrics(createMetrics('policy-test'))
    // A busy machine is no outage: tests that want one cut the cable.
    return new RedisRateLimiter({
      redisUrl,
      keyPrefix: this.#keyPrefix,
      log: silent,
      metrics,
      commandTimeoutMs: 10_000,
    })
  }

  async close(): Promise<void> {
    await this.emptyRedis()
    this.#redis.disconnect()
    await this.limiter.close()
    await this.#db.close()
    await this.admin.close()
  }

  /** Returns how many keys were there. */
  async emptyRedis(): Promise<number> {
    const keys = await this.#redis.keys(`${this.#keyPrefix}*`)
    return keys.length === 0 ? 0 : await this.#redis.del(...keys)
  }

  benchOptions({ budgets = [], routes = [toTriage], reporting = [] }: World = {}): BenchOptions {
    return {
      routes,
      reportingAgents: new Set(reporting),
      rules: { budgets, maxHops: 3 },
      configVersion: 'v1',
      limiter: this.limiter,
      log: silent,
      metrics: createPolicyMetrics(createMetrics('policy-test')),
      ledger: new PostgresPolicyLedger(this.#db),
      deliveries: new PostgresDeliveryLedger(this.#db),
      codec: createAvroPolicyCodec(this.#codec),
      // Only durations are measured with it; each reading is later than any pause.
      clock: { nowMs: () => (this.#nowMs += 5_000) },
      faultPoint: () => undefined,
      rawCodec: this.#codec,
      owners: createOwnerStore(this.#db),
      partition: this.#lastNumber++,
      logIds: {
        events: formatUuid(randomBytes(16)),
        released: formatUuid(randomBytes(16)),
        outcomes: formatUuid(randomBytes(16)),
      },
    }
  }

  async newBench(world: World = {}): Promise<PartitionBench> {
    const bench = new PartitionBench(this.benchOptions(world))
    await bench.takeOver()
    return bench
  }

  /** Names no other test has used. */
  freshNames(count: number): string[] {
    const prefix = this.#lastNumber++
    return Array.from({ length: count }, (_, i) => `e${prefix}-${i}`)
  }

  ceiling(
    limit: number,
    onExhaust: 'deny' | 'defer' = 'deny',
    scope: 'tenant' | 'run' = 'tenant',
  ): BudgetConfiguration {
    const window = onExhaust === 'deny' ? 'none' : 'day'
    return { kind: 'ceiling', name: `ceiling-${this.#lastNumber++}`, scope, tenants: [], limit, window, onExhaust }
  }

  rate(limit: number, periodSeconds: number, burst: number): BudgetConfiguration {
    const name = `rate-${this.#lastNumber++}`
    return { kind: 'rate', name, scope: 'tenant', tenants: [], limit, periodSeconds, burst }
  }

  async usedOf(budget: BudgetConfiguration): Promise<number> {
    const sql = `select coalesce(sum(used), 0)::int as used from policy.budget where budget like $1 || '/%'`
    const [row] = await this.admin.query<{ used: number }>(sql, [budget.name])
    return row?.used ?? 0
  }

  /** The delivery to triage of an event of `eventOf(name)`, as far as it is told apart. */
  async stateOf(name: string): Promise<Record<string, unknown> | undefined> {
    const sql = `select state, attempt, deliveries, parked_code, event is null as forgotten
      from policy.delivery where decision_id = $1`
    const [row] = await this.admin.query<Record<string, unknown>>(sql, [deliveryIdOf(name)])
    return row
  }

  async waitingCount({ ownership }: PartitionBench): Promise<number> {
    const sql = 'select count(*)::int as n from policy.waiting where partition = $1'
    const [row] = await this.admin.query<{ n: number }>(sql, [ownership.partition])
    return row?.n ?? 0
  }

  /** Makes everything that waits for a time due. */
  async makeDue({ ownership }: PartitionBench): Promise<void> {
    const sql = 'update policy.waiting set not_before_ms = 0 where partition = $1 and not_before_ms is not null'
    await this.admin.query(sql, [ownership.partition])
  }

  /** All rows of a partition number that a rebuild has to restore. */
  async rowsOf({ ownership }: PartitionBench): Promise<{ verdicts: object[]; waiting: object[]; charges: object[] }> {
    const params = [ownership.partition]
    const [verdicts, waiting, charges] = await Promise.all([
      this.admin.query('select * from policy.verdict where partition = $1 order by decision_id, attempt', params),
      this.admin.query(
        `select decision_id, agent, ordering_key, tenant, log_id, "offset", event, not_before_ms, rate_reserved, next_attempt,
                ended_attempt
         from policy.waiting where partition = $1 order by decision_id`,
        params,
      ),
      this.admin.query(
        `select c.* from policy.charge c join policy.verdict v on v.decision_id = c.charge_id and v.attempt = c.attempt
         where v.partition = $1 order by c.charge_id, c.budget`,
        params,
      ),
    ])
    return { verdicts, waiting, charges }
  }
}
