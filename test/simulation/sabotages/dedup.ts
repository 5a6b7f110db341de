// Rules of dedup: what is claimed when, and what an answer means.
import type { DedupOptions } from '@weir/dedup'
import type { Alterations } from '../context.ts'
import type { ClaimAnswer, ClaimLedger, ClaimRequest } from '../stand-ins/ports.ts'
import { dedupOnly, withHandler, type Sabotage } from './sabotage.ts'

function withLedger(change: (ledger: ClaimLedger) => ClaimLedger): Alterations {
  return { dedup: (options): DedupOptions => ({ ...options, ledger: change(options.ledger) }) }
}

/** Somebody else's claim, as far as the judge can tell. */
function asOthers(answer: ClaimAnswer): ClaimAnswer {
  return { ...answer, holder: { ...answer.holder, deliveryId: 'another' }, knownEmitted: true }
}

export const dedup: readonly Sabotage[] = [
  {
    name: 'coordinate-ignored',
    what: 'a record that is read again finds its own claim and takes itself for a duplicate',
    stages: dedupOnly,
    make: () => ({
      claimModel: (model, { tables }) => ({
        ...model,
        claim: input => {
          const known = new Set(tables.claims.keys())
          const answers = model.claim(input)
          return (
            answers?.map((answer, i) =>
              known.has(input.requests[i]?.eventKey.toString('hex') ?? '') ? asOthers(answer) : answer,
            ) ?? null
          )
        },
      }),
    }),
  },
  {
    name: 'absent-is-duplicate',
    what: 'whoever did not insert the row in this call counts as a duplicate, also when Postgres did not say whose it is',
    stages: dedupOnly,
    make: () =>
      withLedger(ledger => {
        const asked = new Set<string>()
        return {
          ...ledger,
          claim: async (input, context, requests) => {
            const before = requests.map(request => asked.has(request.eventKey.toString('hex')))
            for (const request of requests) asked.add(request.eventKey.toString('hex'))
            const answers = await ledger.claim(input, context, requests)
            return answers?.map((answer, i) => (before[i] === true ? asOthers(answer) : answer)) ?? null
          },
        }
      }),
  },
  {
    name: 'claim-overwritten',
    what: 'a claim takes over the row of an earlier one',
    stages: dedupOnly,
    make: () => ({
      claimModel: (model, { tables }) => ({
        ...model,
        claim: input => {
          for (const { eventKey } of input.requests) tables.claims.delete(eventKey.toString('hex'))
          return model.claim(input)
        },
      }),
    }),
  },
  {
    name: 'claim-after-emit',
    what: 'keys are looked up, emitted, and claimed when the transaction is committed',
    stages: dedupOnly,
    make: claimAfterEmit,
  },
  {
    name: 'cache-decides',
    what: 'a shared cache that is set before the claim decides who is first, and nobody asks Postgres',
    stages: dedupOnly,
    make: () => {
      const cache = new Set<string>()
      return {
        claimModel: model => ({
          ...model,
          claim: input => {
            const before = input.requests.map(request => cache.has(request.eventKey.toString('hex')))
            for (const request of input.requests) cache.add(request.eventKey.toString('hex'))
            const answers = model.claim(input)
            return answers?.map((answer, i) => (before[i] === true ? asOthers(answer) : answer)) ?? null
          },
        }),
      }
    },
  },
  {
    name: 'expiry-by-wall-clock',
    what: 'claims are forgotten by the clock on the wall, not by the append time the partition has reached',
    stages: dedupOnly,
    make: () => ({
      claimModel: (model, { tables, timeline }) => ({
        ...model,
        claim: input => {
          for (const [key, { appendedAtMs }] of tables.claims) {
            if (timeline.nowMs() - appendedAtMs > 1_000) tables.claims.delete(key)
          }
          return model.claim(input)
        },
      }),
    }),
  },
  {
    name: 'business-key-of-a-loser',
    what: 'a record that lost its event key claims its business key all the same',
    stages: dedupOnly,
    make: () => ({
      claimModel: (model, { tables }) => ({
        ...model,
        claim: input => {
          for (const { businessKey, eventKey } of input.requests) {
            if (businessKey === null) continue
            tables.business.set(businessKey.key.toString('hex'), { ...businessKey, eventKey: eventKey.toString('hex') })
          }
          return model.claim(input)
        },
      }),
    }),
  },
  {
    name: 'business-key-unchecked',
    what: 'a business key that another event holds stops nobody',
    stages: dedupOnly,
    make: () => ({
      claimModel: model => ({
        ...model,
        claim: input => model.claim(input)?.map(answer => ({ ...answer, businessHolder: null })) ?? null,
      }),
    }),
  },
  {
    name: 'partitioned-by-event-key',
    what: 'weir.raw is partitioned by the event key and not by the ordering key',
    stages: dedupOnly,
    make: () => ({
      partitionOf: (_ordering, key, partitions) => Buffer.from(key).reduce((sum, byte) => sum + byte, 0) % partitions,
    }),
  },
]

function claimAfterEmit(): Alterations {
  type Input = Parameters<ClaimLedger['claim']>
  const pending = new Map<string, Input>()
  const key = (instance: string, partition: number): string => `${instance}/${partition}`
  const ledgers = new Map<string, ClaimLedger>()
  return {
    dedup: (options, { world, instance }) => {
      ledgers.set(instance, options.ledger)
      const looked = (request: ClaimRequest, input: Input[0]): ClaimAnswer => {
        const row = world.tables.claims.get(request.eventKey.toString('hex'))
        const { logId, partition } = input
        const { deliveryId, payloadDigest, offset } = request
        if (row === undefined) {
          const holder = { deliveryId, payloadDigest, coordinate: { logId, partition, offset } }
          return { holder, knownEmitted: false, businessHolder: null }
        }
        const coordinate = { logId: row.logId, partition: row.partition, offset: row.offset }
        const holder = { deliveryId: row.deliveryId, payloadDigest: row.payloadDigest, coordinate }
        return { holder, knownEmitted: true, businessHolder: null }
      }
      const ledger: ClaimLedger = {
        ...options.ledger,
        claim: (input, context, requests) => {
          pending.set(key(instance, input.partition), [input, context, requests])
          return Promise.resolve(requests.map(request => looked(request, input)))
        },
      }
      return { ...options, ledger }
    },
    handler: (handler, { instance }) =>
      withHandler(handler, {
        committed: async batch => {
          const input = pending.get(key(instance, batch.partition))
          pending.delete(key(instance, batch.partition))
          if (input !== undefined) await ledgers.get(instance)?.claim(...input)
        },
      }),
  }
}
