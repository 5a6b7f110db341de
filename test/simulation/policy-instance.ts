// Policy's handler over the stand-ins of its ledger and its limiter.
import type {
  Broker,
  BudgetConfiguration,
  Clock,
  Ownership,
  Publisher,
  RouteConfiguration,
  StageHandler,
} from '@weir/core'
import { PolicyService } from '@weir/policy'
import type { Life } from './network.ts'
import { Gcra } from './stand-ins/gcra.ts'
import type { DeliveryLedger, PolicyLedger, RateLimiter } from './stand-ins/ports.ts'
import type { Place, World } from './context.ts'

/** Short enough that a release is produced again within a run. */
const claimTimeoutMs = 1_500

/** What the process around the handler gives it. */
interface Process {
  readonly place: Place
  readonly life: Life
  readonly clock: Clock
  readonly broker: Broker
  /** One statement, done at once or not at all. */
  readonly postgres: <T>(text: string, perform: () => T) => Promise<T>
}

export function createPolicyHandler(process: Process): StageHandler {
  const { place, life, clock, broker } = process
  const { world } = place
  let publisher: Promise<Publisher> | null = null
  const options = {
    topics: world.topics,
    partitions: world.scenario.partitions,
    routes: routesOf(world.agents),
    reportingAgents: new Set<string>(),
    rules: { budgets: budgetsOf(world.scenario), maxHops: 8 },
    configVersion: 'simulated',
    ledger: ledgerOf(process),
    deliveries: deliveriesOf(process),
    limiter: limiterOf(world, life),
    publisher: {
      publish: async (records: Parameters<Publisher['publish']>[0]) => {
        publisher ??= broker.openPublisher()
        return (await publisher).publish(records)
      },
    },
    codec: world.codec,
    clock,
    log: silent,
    metrics: {
      judged: nothing,
      repeated: nothing,
      claimed: nothing,
      released: nothing,
      reported: nothing,
      expired: nothing,
      waiting: nothing,
      forget: nothing,
      limiterDegraded: nothing,
      limiterAnswered: nothing,
    },
    faultPoint: nothing,
    claimTimeoutMs,
  } satisfies ConstructorParameters<typeof PolicyService>[0]
  return new PolicyService(world.alter.policy?.(options, place) ?? options)
}

const nothing = (): void => undefined
const silent = { debug: nothing, info: nothing, warn: nothing, error: nothing, child: () => silent }

function routesOf(agents: readonly string[]): RouteConfiguration[] {
  return [
    {
      name: 'all',
      tenant: 'acme',
      sources: ['*'],
      types: ['*'],
      agents,
      maxAttempts: 3,
      backoffSeconds: 1,
      deadlineSeconds: 4,
    },
  ]
}

export function budgetsOf({ budgets, deliveries, agents }: World['scenario']): BudgetConfiguration[] {
  const events = new Set(deliveries.map(({ event }) => event)).size
  /** Two windows take all. */
  const half = Math.max(1, Math.ceil((events * agents) / 2))
  const rate = {
    kind: 'rate',
    name: 'pace',
    scope: 'tenant',
    tenants: [],
    limit: 2,
    periodSeconds: 1,
    burst: 1,
  } as const
  const ceiling = { kind: 'ceiling', name: 'cap', scope: 'tenant', tenants: [], limit: half, window: 'minute' } as const
  switch (budgets) {
    case 'none':
      return []
    case 'rate':
      return [rate]
    case 'ceiling':
      return [{ ...ceiling, onExhaust: 'defer' }]
    case 'both':
      return [rate, { ...ceiling, onExhaust: 'defer' }]
    case 'deny':
      return [{ ...ceiling, onExhaust: 'deny' }]
  }
}

function ledgerOf({ place: { world }, life, postgres: read }: Process): PolicyLedger {
  const model = world.policy
  const write = <T>(ownership: Ownership, text: string, perform: () => T): Promise<T> =>
    read(`${text} of partition ${ownership.partition}`, () => world.asOwner(life, ownership, perform))
  return {
    look: (batch, attempts, questions) =>
      read(`looks up ${batch.records.length} records of ${batch.topic}-${batch.partition}`, () =>
        model.look(batch, attempts, questions),
      ),
    claim: (batch, context, requests, at) =>
      write(context.ownership, `claims ${requests.length} verdicts for ${batch.topic}`, () =>
        model.claim(batch, context, requests, at),
      ),
    park: (ownership, deliveries, why) =>
      write(ownership, `parks ${deliveries.length} deliveries`, () => model.park(ownership, deliveries, why)),
    settle: (ownership, committed, ids) =>
      write(ownership, `deletes the waiting rows of ${ids === null ? 'all' : ids.length} ended deliveries`, () =>
        model.settle(ownership, committed, ids),
      ),
    candidates: (ownership, committed, perGroup) =>
      read(`looks what waits in partition ${ownership.partition}`, () =>
        model.candidates(ownership, committed, perGroup),
      ),
    fetchWaiting: (ownership, ids) =>
      read(`fetches ${ids.length} waiting events`, () => model.fetchWaiting(ownership, ids)),
    markReleased: (ownership, released) =>
      write(ownership, `marks ${released.length} deliveries as released`, () =>
        model.markReleased(ownership, released),
      ),
    restore: async (ownership, rows) => {
      const restored = await write(ownership, `restores ${rows.verdicts.length} verdicts`, () =>
        model.restore(ownership, rows),
      )
      const parked = rows.parked[0]
      if (restored === null || parked === undefined) return restored
      const why = {
        code: parked.reasons[0]?.code ?? 'refused',
        detail: parked.reasons[0]?.detail ?? '',
        atMs: parked.atMs,
      }
      const isParked = await write(ownership, `parks ${rows.parked.length} deliveries`, () =>
        model.park(ownership, rows.parked, why),
      )
      return isParked ? restored : null
    },
  }
}

function deliveriesOf({ place: { world }, life, postgres: read }: Process): DeliveryLedger {
  const model = world.deliveries
  const write = <T>(ownership: Ownership, text: string, perform: () => T): Promise<T> =>
    read(`${text} of partition ${ownership.partition}`, () => world.asOwner(life, ownership, perform))
  return {
    lookReports: (batch, keys) => read(`looks up ${keys.length} reports`, () => model.lookReports(batch, keys)),
    claimReports: (batch, context, rows, atMs) =>
      write(context.ownership, `claims ${rows.length} reports`, () => model.claimReports(batch, context, rows, atMs)),
    overdue: (ownership, committed, ask) =>
      read(`looks what is overdue in partition ${ownership.partition}`, () => model.overdue(ownership, committed, ask)),
    markOverdue: (ownership, overdue) =>
      write(ownership, `marks ${overdue.length} deliveries as overdue`, () => model.markOverdue(ownership, overdue)),
    restoreDeliveries: (ownership, rows) =>
      write(ownership, `restores ${rows.deliveries.length} deliveries`, () => model.restoreDeliveries(ownership, rows)),
    expire: (ownership, ask) => write(ownership, 'removes old rows', () => model.expire(ownership, ask)),
  }
}

/** Redis while it answers, else rates of its own. */
function limiterOf(world: World, life: Life): RateLimiter {
  const own = new Gcra()
  return {
    ask: async (requests, nowMs) => {
      const text = `asks the rates of ${requests.length} deliveries`
      const request = { service: 'redis', kind: 'redis', text, lost: () => new Error('Redis does not answer') } as const
      try {
        return await world.network.call(life, request, () => world.gcra.ask(requests, world.timeline.nowMs()))
      } catch {
        return own.ask(requests, nowMs, true)
      }
    },
    setShare: nothing,
  }
}
