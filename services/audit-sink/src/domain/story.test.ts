import { describe, expect, it } from 'vitest'
import { tell, type StoryRow } from './story.ts'

const row = (leafIndex: number, change: Partial<StoryRow>): StoryRow => ({
  leafIndex,
  kind: 'received',
  topic: 'weir.raw',
  partition: 0,
  offset: leafIndex,
  timestampMs: Date.UTC(2026, 0, 2, 3, 4, 5, 678),
  tenant: 'acme',
  source: 'github',
  eventKey: 'ab'.repeat(32),
  eventKeyText: 'acme/github/1',
  subject: 'acme/api',
  run: null,
  rootEvent: null,
  cause: null,
  decisionId: null,
  deliveryId: 'd1',
  agent: null,
  verdict: null,
  type: 'release.published',
  attempt: null,
  copies: 1,
  detail: null,
  ...change,
})

describe('telling a story', () => {
  it('tells a denied event with the rule that denied it', () => {
    const [story] = tell([
      row(0, { detail: 'verified with main, key from provider' }),
      row(1, { kind: 'verdict', verdict: 'dedup:admitted' }),
      row(2, {
        kind: 'verdict',
        verdict: 'policy:deny',
        agent: 'billing',
        decisionId: 'dec-1',
        attempt: 0,
        detail: 'the run has used 10 of 10 steps [run-steps]',
      }),
    ])
    expect(story?.steps.map(step => step.sentence)).toEqual([
      '2026-01-02 03:04:05.678Z release.published about acme/api arrived for tenant acme through github as delivery d1 (verified with main, key from provider).',
      '2026-01-02 03:04:05.678Z dedup let it through as the first of its key.',
      '2026-01-02 03:04:05.678Z policy denied it for agent billing as decision dec-1: the run has used 10 of 10 steps [run-steps].',
    ])
  })

  it('tells a storm of repeats in one sentence each for arrivals, answers and duplicates', () => {
    const [story] = tell([
      row(0, {}),
      ...[1, 2, 3].map(n => row(n, { deliveryId: `d${n}` })),
      row(4, {
        kind: 'verdict',
        verdict: 'dedup:duplicate',
        copies: 3,
        detail: 'the event key was won by delivery d1 before',
      }),
      row(5, { kind: 'receipt', verdict: 'accepted', copies: 4, detail: 'answered 202 ok' }),
    ])
    expect(story?.steps.map(step => step.sentence.slice(25))).toEqual([
      'release.published about acme/api arrived for tenant acme through github as delivery d1 (no detail); it arrived 4 times in all.',
      'dedup dropped 3 deliveries as duplicates: the event key was won by delivery d1 before.',
      'the sender was answered 202 ok (4 times).',
    ])
  })

  it('puts the event that moved last first', () => {
    const stories = tell([row(0, { eventKey: '01' }), row(5, { eventKey: '02' }), row(3, { eventKey: '01' })])
    expect(stories.map(story => story.eventKey)).toEqual(['02', '01'])
  })
})
