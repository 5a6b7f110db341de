import type { BudgetConfiguration } from '@weir/core'
import type { RawEvent } from '@weir/schemas'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { claimRequests, heldUp } from './batch.ts'
import type { Case } from './case.ts'
import type { GateInput, RateAnswer } from './gates/gate.ts'
import { judge, type Proposal } from './judge.ts'
import { rateScopes } from './budgets.ts'

const event = (hops = 0, orderingKey = 'acme/one'): RawEvent => ({
  tenant: 'acme',
  source: 'github',
  eventKey: Buffer.alloc(32),
  eventKeyText: 'acme/github/1',
  eventId: '1',
  keyOrigin: 'header',
  deliveryId: '00000000-0000-7000-8000-000000000000',
  orderingKey,
  type: 'push',
  subject: null,
  object: null,
  version: null,
  run: 'run',
  rootEvent: null,
  cause: null,
  hops,
  businessKey: null,
  secondKey: null,
  payloadDigest: Buffer.alloc(32),
  contentType: null,
  data: Buffer.alloc(0),
  headers: [],
  receivedAtMs: 0,
  eventTimeMs: null,
  eventTimeSigned: false,
  copies: 1,
  credentialId: null,
  attempt: 0,
  generation: 0,
  replayId: null,
  traceparent: null,
  tracestate: null,
})

function subject(
  offset: number,
  more: Partial<Case> & { readonly hops?: number; readonly isRelease?: boolean } = {},
): Case {
  const { hops = 0, isRelease = false, ...rest } = more
  const decisionId = `decision-${offset}`
  const record = { topic: 't', partition: 0, offset, timestampMs: 0, key: null, value: null, headers: [] }
  const released = { decisionId, attempt: 1, agent: 'triage', rateReserved: false, isAgain: false }
  return {
    item: {
      record,
      event: event(hops),
      eventBytes: Buffer.alloc(0),
      admissionId: '',
      origin: { logId: 'log', partition: 0, offset },
      release: isRelease ? released : null,
    },
    agent: 'triage',
    agents: ['triage'],
    decisionId,
    attempt: isRelease ? 1 : 0,
    rateReserved: false,
    isAgain: false,
    version: null,
    terms: null,
    ...rest,
  }
}

const budgets: readonly BudgetConfiguration[] = [
  { kind: 'rate', name: 'r', scope: 'tenant', tenants: [], limit: 5, periodSeconds: 1, burst: 5 },
  { kind: 'ceiling', name: 'c', scope: 'run', tenants: [], limit: 5, window: 'none', onExhaust: 'deny' },
]
const input = (more: Partial<GateInput> = {}): GateInput => ({
  case: subject(1),
  rules: { budgets, maxHops: 5 },
  isStored: false,
  isBehind: false,
  atMs: 1_000,
  rate: { kind: 'passed', degraded: false },
  ...more,
})
const verdictOf = (given: GateInput): string => {
  const judgement = judge(given)
  return judgement.kind === 'proposed' ? judgement.proposal.verdict : judgement.kind
}
const [scope] = rateScopes(budgets, { tenant: 'acme', run: null })
const reserved: RateAnswer | null =
  scope === undefined ? null : { kind: 'reserved', slotMs: 2_000, scope, used: 5, degraded: false }

describe('the verdict', () => {
  it('is that of the first gate that speaks', () => {
    const all = { isStored: true, isBehind: true, rate: reserved, case: subject(1, { agent: '', hops: 9 }) }
    expect(verdictOf(input(all))).toBe('stored')
    expect(verdictOf(input({ ...all, isStored: false }))).toBe('unrouted')
    expect(verdictOf(input({ ...all, isStored: false, case: subject(1, { hops: 9 }) }))).toBe('deny')
    expect(verdictOf(input({ rate: reserved }))).toBe('defer')
    expect(verdictOf(input())).toBe('allow')
  })

  it('asks for no rate when the delivery waits behind another, or has its slot', () => {
    expect(verdictOf(input({ rate: null }))).toBe('ask_rate')
    expect(verdictOf(input({ rate: null, isBehind: true }))).toBe('defer')
    expect(verdictOf(input({ rate: null, case: subject(1, { rateReserved: true }) }))).toBe('allow')
  })

  it('leaves ceilings to the ledger, and none for what is not allowed', () => {
    const asked = judge(input())
    expect(asked.kind === 'proposed' && asked.proposal.ceilings.map(({ rule }) => rule)).toEqual(['c'])
    const behind = judge(input({ isBehind: true }))
    expect(behind.kind === 'proposed' && behind.proposal.ceilings).toEqual([])
  })

  it('is a pure function: the same input gives the same answer', () => {
    const inputs = fc.record({
      isStored: fc.boolean(),
      isBehind: fc.boolean(),
      hops: fc.nat({ max: 9 }),
      offset: fc.nat(),
    })
    fc.assert(
      fc.property(inputs, ({ isStored, isBehind, hops, offset }) => {
        const given = input({ isStored, isBehind, case: subject(offset, { hops }) })
        expect(judge(given)).toEqual(judge(given))
      }),
    )
  })

  it('never becomes milder when a delivery waits behind another or is further from its root', () => {
    const order = ['allow', 'defer', 'deny']
    fc.assert(
      fc.property(fc.nat({ max: 9 }), fc.boolean(), (hops, isBehind) => {
        const mild = order.indexOf(verdictOf(input({ case: subject(1, { hops }), isBehind })))
        expect(
          order.indexOf(verdictOf(input({ case: subject(1, { hops: hops + 1 }), isBehind }))),
        ).toBeGreaterThanOrEqual(mild)
        expect(order.indexOf(verdictOf(input({ case: subject(1, { hops }), isBehind: true })))).toBeGreaterThanOrEqual(
          mild,
        )
      }),
    )
  })
})

describe('what is held up', () => {
  const place = (offset: number) => ({
    decisionId: `decision-${offset}`,
    agent: 'triage',
    orderingKey: 'acme/one',
    logId: 'log',
    offset,
  })

  it('is every event behind one that waits, and no other', () => {
    const cases = [subject(1), subject(3)]
    expect([...heldUp(cases, [place(2)], [])]).toEqual([cases[1]])
  })

  it('is not a release whose predecessors are released before it in the same batch', () => {
    const cases = [1, 2, 3].map(offset => subject(offset, { isRelease: true }))
    const places = [1, 2, 3].map(place)
    expect(heldUp(cases, places, []).size).toBe(0)
    expect([...heldUp(cases.slice(1), places, [])]).toEqual(cases.slice(1))
  })

  it('in any batch never lets one pass that waits behind one not in the batch', () => {
    const offsets = fc.uniqueArray(fc.nat({ max: 12 }))
    fc.assert(
      fc.property(offsets, offsets, (batch, waiting) => {
        const cases = batch
          .toSorted((a, b) => a - b)
          .map(offset => subject(offset, { isRelease: waiting.includes(offset) }))
        const held = heldUp(cases, waiting.map(place), [])
        for (const one of cases) {
          const { offset } = one.item.origin
          const isBlocked = waiting.some(before => before < offset && !batch.includes(before))
          expect(held.has(one)).toBe(isBlocked)
        }
      }),
    )
  })
})

describe('what the ledger is given', () => {
  it('has the bytes of everything it might defer', () => {
    const proposal = (offset: number, verdict: Proposal['verdict']): Proposal => ({
      case: subject(offset),
      verdict,
      reasons: [],
      notBeforeMs: null,
      ceilings: [],
    })
    const requests = claimRequests([proposal(1, 'allow'), proposal(2, 'defer'), proposal(3, 'allow')])
    expect(requests.map(({ keepsEvent }) => keepsEvent)).toEqual([false, true, true])
  })
})
