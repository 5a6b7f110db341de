// Rules of policy: verdicts, charges, waiting and release.
import type { PolicyOptions } from '@weir/policy'
import type { Alterations } from '../context.ts'
import type { PolicyModel } from '../stand-ins/policy-model.ts'
import type { PolicyLedger } from '../stand-ins/ports.ts'
import { attemptKey } from '../stand-ins/tables.ts'
import { both, type Sabotage } from './sabotage.ts'

function withModel(change: (model: PolicyModel) => Partial<PolicyModel>): Alterations {
  return { policyModel: model => ({ ...model, ...change(model) }) }
}

function withLedger(
  change: (ledger: PolicyLedger) => Partial<PolicyLedger>,
  more: Partial<PolicyOptions> = {},
): Alterations {
  return {
    policy: (options): PolicyOptions => ({
      ...options,
      ...more,
      ledger: { ...options.ledger, ...change(options.ledger) },
    }),
  }
}

const never = Number.MAX_SAFE_INTEGER

export const policy: readonly Sabotage[] = [
  {
    name: 'verdict-updated',
    what: 'a record that is read again gets a new verdict over the stored one',
    stages: both,
    make: () => ({
      policyModel: (model, { tables }) => ({
        ...model,
        look: (batch, _attempts, questions) => ({ ...model.look(batch, [], questions), stored: [] }),
        claim: (batch, context, requests, at) => {
          for (const { proposal } of requests) tables.verdicts.delete(attemptKey(proposal.case))
          return model.claim(batch, context, requests, at)
        },
      }),
    }),
  },
  {
    name: 'attempt-ignored',
    what: 'verdicts are kept per decision: a release finds the verdict of the event',
    stages: both,
    make: () => ({
      policyModel: (model, { tables }) => ({
        ...model,
        look: (batch, attempts, questions) => {
          const look = model.look(batch, attempts, questions)
          const known = attempts.filter(
            ({ decisionId, attempt }) => attempt > 0 && tables.verdicts.has(`${decisionId}:0`),
          )
          const verdicts = known.flatMap(({ decisionId, attempt }) => {
            const row = tables.verdicts.get(`${decisionId}:0`)
            return row === undefined ? [] : [{ ...row, attempt }]
          })
          return { ...look, stored: [...look.stored, ...verdicts] }
        },
      }),
    }),
  },
  {
    name: 'marked-before-produced',
    what: 'the releaser marks before it produces, and trusts its mark',
    stages: both,
    make: () =>
      withLedger(
        ledger => ({
          fetchWaiting: async (ownership, ids) => {
            const rows = await ledger.fetchWaiting(ownership, ids)
            await ledger.markReleased(ownership, rows)
            return rows
          },
        }),
        { claimTimeoutMs: never },
      ),
  },
  {
    name: 'release-trusted',
    what: 'a release that was produced and lost is not produced again',
    stages: both,
    make: () => ({
      policyModel: (model, { tables }) => ({
        ...model,
        candidates: (ownership, committed, perGroup) => {
          const look = model.candidates(ownership, committed, perGroup)
          for (const { decisionId, nextAttempt, releasedAttempt } of look.candidates) {
            const row = tables.waiting.get(decisionId)
            if (row === undefined || releasedAttempt === nextAttempt) continue
            tables.waiting.set(decisionId, { ...row, releasedAttempt: nextAttempt, releasedAtMs: never / 2 })
          }
          return look
        },
      }),
    }),
  },
  {
    name: 'overtaking',
    what: 'a later event does not ask whether an earlier one of its key waits',
    stages: both,
    make: () =>
      withModel(model => ({
        look: (batch, attempts, questions) => ({ ...model.look(batch, attempts, questions), waiting: [] }),
      })),
  },
  {
    name: 'charge-of-a-loser',
    what: 'a claim charges also for verdicts that it only found',
    stages: both,
    make: () => ({
      policyModel: (model, { tables }) => ({
        ...model,
        claim: (batch, context, requests, at) => {
          const answers = model.claim(batch, context, requests, at)
          for (const { proposal } of requests) {
            for (const { budget, windowStartMs } of proposal.ceilings) {
              const key = `${budget}\n${windowStartMs}`
              const row = tables.budgets.get(key)
              if (row !== undefined) tables.budgets.set(key, { ...row, used: row.used + 1 })
            }
          }
          return answers
        },
      }),
    }),
  },
  {
    name: 'ceiling-read-then-charged',
    what: 'the ceiling is compared without what this call has charged already',
    stages: both,
    make: () =>
      withModel(model => ({
        claim: (batch, context, requests, at) =>
          model.claim(
            batch,
            context,
            requests.map(request => ({
              ...request,
              proposal: {
                ...request.proposal,
                ceilings: request.proposal.ceilings.map(ask => ({ ...ask, limit: ask.limit + 1 })),
              },
            })),
            at,
          ),
      })),
  },
  {
    name: 'verdicts-not-rebuilt',
    what: 'policy does not make again what Postgres lost',
    stages: both,
    make: () => withLedger(() => ({ restore: () => Promise.resolve(0) })),
  },
]
