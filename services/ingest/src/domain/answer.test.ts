import { describe, expect, it } from 'vitest'
import { answerFor, answerForBatch, problemBody, type EventOutcome } from './answer.ts'

const accepted: EventOutcome = { kind: 'accepted', deliveryId: 'd' }
const duplicate: EventOutcome = { kind: 'duplicate', originalDeliveryId: 'd' }
const mismatch: EventOutcome = { kind: 'payload_mismatch', originalDeliveryId: 'd' }
const inProgress: EventOutcome = { kind: 'in_progress', originalDeliveryId: 'd', retryAfterSeconds: 0.2 }
const unavailable: EventOutcome = { kind: 'unavailable', retryAfterSeconds: 2 }
const refused: EventOutcome = { kind: 'refused', code: 'invalid_value', detail: null }

describe('answers', () => {
  it('give a client the exact state', () => {
    expect(answerFor(accepted, 'client')).toMatchObject({ status: 202, code: 'ok' })
    expect(answerFor({ kind: 'replayed', deliveryId: 'd' }, 'client').headers).toEqual({
      'idempotent-replayed': 'true',
    })
    expect(answerFor(duplicate, 'client')).toMatchObject({ status: 409, code: 'duplicate_event_key' })
    expect(answerFor(mismatch, 'client')).toMatchObject({ status: 422, code: 'payload_mismatch' })
    expect(answerFor(inProgress, 'client')).toMatchObject({ status: 409, headers: { 'retry-after': '1' } })
    expect(answerFor(unavailable, 'client')).toMatchObject({ status: 503, headers: { 'retry-after': '2' } })
    expect(answerFor({ ...refused, code: 'unauthorized' }, 'client').headers).toEqual({ 'www-authenticate': 'Bearer' })
  })

  it('never give a provider 409, 422 or 429', () => {
    for (const outcome of [accepted, duplicate, mismatch, inProgress, unavailable]) {
      expect([202, 503]).toContain(answerFor(outcome, 'provider').status)
    }
  })

  it('to a batch are a success only when all of it is in Kafka', () => {
    const status = (...outcomes: EventOutcome[]): number => answerForBatch(outcomes).status
    expect(status(accepted, accepted)).toBe(202)
    expect(status(accepted, duplicate)).toBe(207)
    expect(status(duplicate, duplicate)).toBe(409)
    expect(status(accepted, refused)).toBe(400)
    expect(status(accepted, mismatch, refused)).toBe(422)
    expect(status(accepted, inProgress, mismatch)).toBe(409)
    expect(status(accepted, unavailable, inProgress)).toBe(503)
  })

  it('are problem details with a stable type', () => {
    expect(problemBody({ status: 409, code: 'duplicate_event_key', headers: {} }, 'c', { state: 'accepted' })).toEqual({
      type: 'https://weir.dev/problems/duplicate-event-key',
      title: 'An event with this key was accepted before',
      status: 409,
      detail: 'Nothing to do: the original is named in the answer.',
      code: 'duplicate_event_key',
      correlation_id: 'c',
      state: 'accepted',
    })
  })
})
