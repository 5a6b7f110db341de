import fc from 'fast-check'
import { topicNames, type Header, type LogRecord } from '@weir/core'
import { describe, expect, it } from 'vitest'
import { agentColumns, indexed, packHeaders, parkedColumns, unpackHeaders } from './columns.ts'

const record = (change: Partial<LogRecord>): LogRecord => {
  return {
    topic: 'weir.agent.billing',
    partition: 0,
    offset: 0,
    timestampMs: 0,
    key: null,
    value: null,
    headers: [],
    ...change,
  }
}

describe('columns', () => {
  it('are texts Postgres can store and index, whatever the input', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 600 }), text => {
        const stored = indexed(text)
        if (stored === null) return
        expect(stored).not.toContain('\u0000')
        expect(stored.isWellFormed()).toBe(true)
        expect(Buffer.byteLength(stored)).toBeLessThanOrEqual(256)
      }),
      { numRuns: 300 },
    )
  })

  it('of a delivery are storable whatever its headers hold', () => {
    const names = [
      'ce_id',
      'ce_tenantid',
      'ce_source',
      'ce_type',
      'ce_subject',
      'ce_runid',
      'ce_decisionid',
      'ce_attempt',
    ]
    const header = fc.tuple(fc.constantFrom(...names, 'traceparent'), fc.uint8Array({ maxLength: 300 }))
    fc.assert(
      fc.property(fc.array(header, { maxLength: 8 }), list => {
        const headers = list.map(([name, value]): Header => [name, Buffer.from(value)])
        const texts = Object.values(agentColumns(topicNames(), record({ headers }))).filter(v => typeof v === 'string')
        expect(texts.filter(text => text.includes('\u0000') || Buffer.byteLength(text) > 256)).toEqual([])
      }),
    )
  })

  it('have a trace id only from a well-formed traceparent', () => {
    const traceId = (traceparent: string): string | null =>
      agentColumns(topicNames(), record({ headers: [['traceparent', Buffer.from(traceparent)]] })).traceId
    expect(traceId(`00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`)).toBe('a'.repeat(32))
    for (const text of ['', '00-', '00-\u0000-', `00-${'a'.repeat(3_000)}-${'b'.repeat(16)}-01`])
      expect(traceId(text)).toBe(null)
  })

  it('keep headers byte for byte, duplicates and binary ones too', () => {
    const header = fc.tuple(fc.string({ maxLength: 20 }), fc.uint8Array({ maxLength: 40 }))
    fc.assert(
      fc.property(fc.array(header, { maxLength: 8 }), list => {
        const headers = list.map(([name, value]): Header => [name.toWellFormed(), Buffer.from(value)])
        expect(unpackHeaders(packHeaders(headers))).toEqual(headers)
      }),
    )
  })

  it('of a delivery come from its CloudEvents headers', () => {
    const headers = Object.entries({
      ce_id: 'ab'.repeat(32),
      ce_tenantid: 'acme',
      ce_decisionid: 'dec-1',
      ce_attempt: '2',
      ce_subject: 'cus_1',
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    }).map(([name, value]): Header => [name, Buffer.from(value)])
    expect(agentColumns(topicNames(), record({ headers }))).toMatchObject({
      kind: 'delivered',
      agent: 'billing',
      tenant: 'acme',
      eventKey: Buffer.from('ab'.repeat(32), 'hex'),
      decisionId: 'dec-1',
      attempt: 2,
      subject: 'cus_1',
      traceId: '0af7651916cd43dd8448eb211c80319c',
    })
  })

  it('of a parked record that cannot be read keep the reason', () => {
    const headers: Header[] = [
      ['weir-parked-stage', Buffer.from('dedup')],
      ['weir-parked-reason', Buffer.from('malformed')],
    ]
    const columns = parkedColumns(record({ topic: 'weir.parked', headers }), null)
    expect(columns).toMatchObject({
      kind: 'parked',
      verdict: 'dedup:parked',
      detail: 'malformed: no detail',
      opaque: 'malformed',
    })
  })
})
