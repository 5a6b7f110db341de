import type { Outcome } from '@weir/schemas'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { backoffAfter, settleReports, type OpenDelivery, type Report, type StoredOutcome } from './outcome.ts'

const context = { logId: 'log', partition: 0, atMs: 1_000_000 }

const open = (overrides: Partial<OpenDelivery> = {}): OpenDelivery => ({
  decisionId: 'd',
  agent: 'billing',
  state: 'in_progress',
  attempt: 0,
  deliveries: 1,
  parkedCode: null,
  maxAttempts: 3,
  backoffMs: 1_000,
  deadlineMs: 60_000,
  event: Buffer.from('event'),
  origin: { logId: 'events', partition: 0, offset: 0 },
  ...overrides,
})

function report(
  offset: number,
  overrides: Partial<Pick<Report, 'kind' | 'status' | 'effects'>> & { attempt?: number } = {},
): Report {
  const { attempt = 0, kind = 'report', status = 'completed', effects = '' } = overrides
  const outcome = { decisionId: 'd', attempt, agent: 'billing', status, effects } as Outcome
  const record = { topic: 'o', partition: 0, offset, timestampMs: 0, key: null, value: null, headers: [] }
  return { record, outcome, kind, status, effects }
}

const failed = (effects: 'none' | 'unknown' | 'done') => ({ status: 'failed', effects }) as const

function results(reports: readonly Report[], delivery = open()): string[] {
  return settleReports(reports, { deliveries: [delivery], outcomes: [] }, context).map(answer =>
    answer.kind === 'settled' ? [answer.row.result, answer.row.code].filter(Boolean).join(' ') : answer.kind,
  )
}

describe('a report', () => {
  it('completes, repeats, or parks', () => {
    expect(results([report(0)])).toEqual(['completed'])
    expect(results([report(0, failed('none'))])).toEqual(['again'])
    expect(results([report(0, failed('none'))], open({ deliveries: 3 }))).toEqual(['parked attempts_exhausted'])
    expect(results([report(0, failed('unknown'))])).toEqual(['parked effects_unknown'])
    expect(results([report(0, failed('done'))])).toEqual(['parked effects_done'])
    expect(results([report(0, { kind: 'deadline', status: 'no_report' })])).toEqual(['parked no_report'])
  })

  it('said twice counts once; a contradiction changes nothing', () => {
    expect(results([report(0), report(1)])).toEqual(['completed', 'repeated'])
    expect(results([report(0), report(1, failed('none'))])).toEqual(['completed', 'contradicted'])
    expect(results([report(0, failed('none')), report(1)])).toEqual(['again', 'contradicted'])
  })

  it('that comes late changes nothing, except that the work is done after all', () => {
    const overdue = report(0, { kind: 'deadline', status: 'no_report' })
    expect(results([overdue, report(1)])).toEqual(['parked no_report', 'completed late'])
    expect(results([overdue, report(1, failed('none'))])).toEqual(['parked no_report', 'late parked'])
    expect(results([report(0), report(1, { kind: 'deadline', status: 'no_report' })])).toEqual(['completed', 'moot'])
    expect(results([report(0)], open({ state: 'waiting' }))).toEqual(['late waiting'])
    expect(results([report(0)], open({ attempt: 2, deliveries: 2 }))).toEqual(['late in_progress'])
  })

  it('about nothing that was delivered is unknown', () => {
    expect(results([report(0, { attempt: 1 })])).toEqual(['unknown'])
    expect(results([report(0)], open({ agent: 'other' }))).toEqual(['unknown'])
    expect(results([report(0)], open({ decisionId: 'x' }))).toEqual(['unknown'])
  })
})

const anyReport = fc.record({
  attempt: fc.nat({ max: 2 }),
  said: fc.constantFrom(
    { kind: 'report', status: 'completed', effects: '' } as const,
    { kind: 'report', status: 'failed', effects: 'none' } as const,
    { kind: 'report', status: 'failed', effects: 'unknown' } as const,
    { kind: 'report', status: 'failed', effects: 'done' } as const,
    { kind: 'deadline', status: 'no_report', effects: '' } as const,
  ),
})

describe('any series of reports', () => {
  const series = fc.array(anyReport, { maxLength: 12 })
  const numbered = (items: readonly { attempt: number; said: object }[]): Report[] =>
    items.map(({ attempt, said }, offset) => report(offset, { attempt, ...said }))

  it('ends a delivery at most once, but for the late completion of one that was overdue', () => {
    fc.assert(
      fc.property(series, items => {
        const ends = results(numbered(items)).filter(text => /^(completed|parked|again)/.test(text))
        expect(ends.slice(1)).toEqual(ends[0] === 'parked no_report' && ends.length > 1 ? ['completed late'] : [])
      }),
    )
  })

  it('gives the same answers however it is split, and when it is read again', () => {
    fc.assert(
      fc.property(series, fc.nat({ max: 12 }), (items, cut) => {
        const reports = numbered(items)
        const whole = settleReports(reports, { deliveries: [open()], outcomes: [] }, context)
        const rows = (answers: readonly { kind: string; row?: StoredOutcome }[]): StoredOutcome[] =>
          answers.flatMap(({ kind, row }) => (kind === 'settled' && row !== undefined ? [row] : []))
        const head = settleReports(reports.slice(0, cut), { deliveries: [open()], outcomes: [] }, context)
        const stored = rows(head)
        const moved = stored.reduce((delivery, { result, code }) => applied(delivery, result, code), open())
        const again = settleReports(reports, { deliveries: [moved], outcomes: stored }, context)
        expect(again.map(({ kind }) => kind)).toEqual(whole.map(({ kind }) => kind))
        expect(rows(again)).toEqual(rows(whole))
      }),
    )
  })
})

/** What policy.claim_outcomes does to the row. */
function applied(delivery: OpenDelivery, result: StoredOutcome['result'], code: string): OpenDelivery {
  if (result === 'late' || result === 'moot') return delivery
  const state = result === 'again' ? 'waiting' : result
  return { ...delivery, state, parkedCode: result === 'parked' ? code : null }
}

describe('the wait before a further attempt', () => {
  it('doubles, up to an hour or the first wait where that is longer', () => {
    expect([1, 2, 3, 4].map(n => backoffAfter(n, 1_000))).toEqual([1_000, 2_000, 4_000, 8_000])
    expect(backoffAfter(99, 1_000)).toBe(3_600_000)
    expect(backoffAfter(2, 7_200_000)).toBe(7_200_000)
  })
})
