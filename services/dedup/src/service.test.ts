import { sha256, topicNames, type LogRecord, type OutRecord } from '@weir/core'
import type { Decision } from '@weir/schemas'
import { describe, expect, it } from 'vitest'
import { eventFault } from './domain/validate.ts'
import { settleRepeats } from './domain/batch.ts'
import { judge } from './domain/judge.ts'
import { outputsOf, unreadableOutputs } from './domain/outputs.ts'
import { restoredClaims } from './domain/restore.ts'
import { rawEvent } from '../../../test/support/raw-event.ts'

const here = { logId: '11111111-1111-4111-8111-111111111111', partition: 0, offset: 5 }
const record = (offset: number, value: Buffer | null = Buffer.from('v')): LogRecord => {
  return { topic: 'weir.raw', partition: 0, offset, timestampMs: 1_000 + offset, key: null, value, headers: [] }
}

describe('validation', () => {
  it('accepts what the edge writes', () => expect(eventFault(rawEvent('e1', 1))).toBeNull())

  it.each([
    ['tenant with NUL', { tenant: 'a\u0000b' }, 'tenant is nul'],
    ['type empty', { type: '' }, 'type is empty'],
    ['lone surrogate', { subject: '\ud800' }, 'subject is ill_formed'],
    ['run too long', { run: 'x'.repeat(1_025) }, 'run is too_long'],
    ['foreign delivery id', { deliveryId: 'not-a-uuid' }, 'deliveryId is not a UUID'],
    ['copies 0', { copies: 0 }, 'copies is 0'],
    ['digest of other bytes', { payloadDigest: sha256('other') }, 'payloadDigest is not the SHA-256 of data'],
  ])('refuses %s, naming it', (_, change, message) => {
    expect(eventFault(rawEvent('e1', 1, change))).toContain(message)
  })

  it('refuses an event key that is not cut from its parts: a producer cannot claim another tenant’s event', () => {
    expect(eventFault({ ...rawEvent('e1', 1), eventKey: rawEvent('e2', 1).eventKey })).toContain('eventKey is not')
  })
})

describe('settling a batch', () => {
  it('lets the first offset stand for a key and counts the rest', () => {
    const items = [1, 2, 3].map(n => ({ record: record(n), event: rawEvent('e1', n) }))
    const { firsts, repeats } = settleRepeats(items)
    expect(firsts.map(f => f.record.offset)).toEqual([1])
    expect(repeats).toMatchObject([{ copies: 2, payloadDiffers: false, last: { record: { offset: 3 } } }])
  })

  it('keeps a repeat with another payload apart', () => {
    const changed = rawEvent('e1', 2, { data: Buffer.from('other'), payloadDigest: sha256('other') })
    const { repeats } = settleRepeats([
      { record: record(1), event: rawEvent('e1', 1) },
      { record: record(2), event: changed },
      { record: record(3), event: rawEvent('e1', 3) },
    ])
    expect(repeats.map(r => [r.copies, r.payloadDiffers])).toEqual([
      [1, true],
      [1, false],
    ])
  })
})

describe('judging', () => {
  const event = rawEvent('e1', 1)
  const holder = { deliveryId: event.deliveryId, coordinate: here, payloadDigest: event.payloadDigest }
  const judged = { record: record(5), event }
  const answer = { holder, knownEmitted: false, businessHolder: null }

  it('lets through the record whose coordinate and delivery id the claim holds, also when it is read again', () => {
    expect(judge(judged, here, answer, 'flag')).toEqual({ kind: 'admitted' })
  })

  it('takes the same delivery id at another offset for a duplicate', () => {
    const earlier = { ...holder, coordinate: { ...here, offset: 4 } }
    expect(judge(judged, here, { ...answer, holder: earlier }, 'flag')).toMatchObject({ kind: 'duplicate' })
  })

  it('takes the same coordinate with another delivery id for a duplicate: the log was replaced', () => {
    const other = { ...holder, deliveryId: rawEvent('e1', 9).deliveryId }
    expect(judge(judged, here, { ...answer, holder: other }, 'flag')).toMatchObject({ kind: 'duplicate' })
  })

  it('takes a lost business key for a duplicate of its holder', () => {
    const businessHolder = {
      eventKey: rawEvent('e2', 2).eventKey,
      deliveryId: rawEvent('e2', 2).deliveryId,
      coordinate: here,
    }
    expect(judge(judged, here, { ...answer, businessHolder }, 'flag')).toMatchObject({ reason: 'business_key' })
  })

  it('parks what another log claimed, unless it is known emitted there', () => {
    const foreign = { ...holder, coordinate: { ...here, logId: '22222222-2222-4222-8222-222222222222' } }
    expect(judge(judged, here, { ...answer, holder: foreign }, 'flag')).toMatchObject({ reason: 'doubtful_log' })
    expect(judge(judged, here, { ...answer, holder: foreign, knownEmitted: true }, 'flag')).toMatchObject({
      kind: 'duplicate',
    })
  })

  it('parks a changed payload only where the source asks for it', () => {
    const other = { ...holder, coordinate: { ...here, offset: 1 }, payloadDigest: sha256('other') }
    expect(judge(judged, here, { ...answer, holder: other }, 'flag')).toMatchObject({
      kind: 'duplicate',
      payloadDiffers: true,
    })
    expect(judge(judged, here, { ...answer, holder: other }, 'park')).toMatchObject({
      kind: 'parked',
      reason: 'payload_changed',
    })
  })
})

describe('outputs', () => {
  const decisions: Decision[] = []
  const encoders = {
    encodeDecision: (decision: Decision) => {
      decisions.push(decision)
      return Buffer.from('decision')
    },
    encodeState: () => Buffer.from('state'),
  }
  const context = { topics: topicNames(), logId: here.logId, partition: 0, nowMs: 7, encoders }
  const topicsOf = (records: readonly OutRecord[]) => records.map(out => out.topic)

  it('emits the untouched bytes, the state and the decision of an admitted event', () => {
    const event = rawEvent('e1', 1)
    const out = outputsOf(context, { record: record(5), event }, { kind: 'admitted' }, 1)
    expect(topicsOf(out)).toEqual(['weir.events', 'weir.dedup-state', 'weir.decisions'])
    expect(out[0]).toMatchObject({ value: Buffer.from('v'), key: Buffer.from(event.orderingKey), partition: 0 })
    for (const { headers } of out) {
      expect(headers.find(([name]) => name === 'weir-input')?.[1].toString()).toBe(`${here.logId}:0:5`)
    }
  })

  it('parks an unreadable record as it is, null values too, and still leaves a decision', () => {
    const out = unreadableOutputs(context, record(6, null), 'empty', 'the value is null')
    expect(topicsOf(out)).toEqual(['weir.parked', 'weir.decisions'])
    expect(out[0]?.value).toBeNull()
  })

  it('tells in its decisions all that the claims hold', () => {
    const event = rawEvent('e1', 1, { businessKey: { space: 'orders', value: '7' } })
    decisions.length = 0
    outputsOf(context, { record: record(5), event }, { kind: 'admitted' }, 1)
    const [claim] = restoredClaims(decisions.map(value => ({ kind: 'ok' as const, value })))
    expect(claim).toMatchObject({
      eventKey: event.eventKey,
      deliveryId: event.deliveryId,
      logId: here.logId,
      offset: 5,
      appendedAtMs: 1_005,
      payloadDigest: event.payloadDigest,
      businessKey: { space: 'orders', value: '7' },
    })
  })
})
