import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { dumpLog } from '../support/log-dump.ts'
import { rawEvent } from '../support/raw-event.ts'
import { publish, publishRaw, untilRead } from '../support/raw-events.ts'
import { until } from '../support/until.ts'
import { startTestSystem, type TestSystem } from '../support/system.ts'

let test: TestSystem
const group = (): string => `${test.system.options.topicPrefix}dedup`

beforeAll(async () => {
  test = await startTestSystem({ partitions: 3, env: { WEIR_DEDUP_BATCH_RECORDS: '50' } })
})
afterEach(async () => await test.system.stop())
afterAll(async () => await test.end())

/** Event ids in weir.events as Kafka's own client reads them, with how often each is there. */
async function emitted(): Promise<Map<string, number>> {
  const counts = new Map<string, number>()
  for (const record of await dumpLog(test.urls.WEIR_KAFKA_BROKERS, [test.topics.events])) {
    const decoded = await test.codec.decode('RawEvent', record.value)
    if (decoded.kind === 'fault') throw new Error(decoded.detail)
    counts.set(decoded.value.eventId, (counts.get(decoded.value.eventId) ?? 0) + 1)
  }
  return counts
}

async function expectOnce(ids: readonly string[]): Promise<void> {
  await untilRead(test, group(), test.topics.raw)
  const counts = await emitted()
  const wrong = ids.filter(id => counts.get(id) !== 1).map(id => `${id}: ${counts.get(id) ?? 0} times`)
  expect(wrong).toEqual([])
}

const ids = (name: string, count: number): string[] => Array.from({ length: count }, (_, i) => `${name}-${i}`)

describe('killed at a named point, then started again', () => {
  it.each(['dedup.before-claim', 'dedup.after-claim', 'dedup.in-transaction', 'dedup.after-commit'])(
    'each event once after SIGKILL at %s',
    async point => {
      const sent = ids(point, 200)
      await publishRaw(
        test,
        [...sent, ...sent].map((id, n) => rawEvent(id, n)),
      )
      await test.system.start('dedup', { untilReady: false, env: { WEIR_FAULT_POINT: `${point}:2` } })
      await test.system.supervisor.gone('dedup', 60_000)
      await test.system.start('dedup', { untilReady: false })
      await expectOnce(sent)
    },
  )
})

describe('take-over', () => {
  it('goes on from its own outputs, with an alarm, when the group offsets were set back', async () => {
    const sent = ids('set-back', 100)
    await test.system.start('dedup')
    await publishRaw(
      test,
      sent.map((id, n) => rawEvent(id, n)),
    )
    await expectOnce(sent)
    await test.system.supervisor.stop('dedup')
    const writer = await test.broker.openWriter({ transactionalId: `${group()}.test`, group: group() })
    const positions = [0, 1, 2].map(partition => ({ topic: test.topics.raw, partition, nextOffset: 0 }))
    const filler = { topic: test.topics.receipts, partition: 0, key: null, value: Buffer.alloc(0), headers: [] }
    expect(await writer.run({ records: [filler], positions })).toEqual({ kind: 'committed' })
    await writer.close()
    await test.system.start('dedup')
    await publishRaw(test, [rawEvent('after-set-back', 1)])
    await expectOnce([...sent, 'after-set-back'])
    expect(await alarms()).toContain('group_offset_lost')
  })

  it('re-creates what Postgres lost, with an alarm: no event twice, none lost', async () => {
    const sent = ids('restored', 100)
    await test.system.start('dedup')
    await publishRaw(
      test,
      sent.map((id, n) => rawEvent(id, n)),
    )
    await expectOnce(sent)
    await test.system.supervisor.stop('dedup')
    // As after a restore from a moment before: the newest claims are gone, and the positions are older.
    await test.db.query(`delete from dedup.claim where event_key_text like 'acme/shop/restored-%'`)
    await test.db
      .query(`update weir.owner_position set emitted_below = greatest(0, emitted_below - 50), claimed_at_ms = 0
                         where stage = 'dedup'`)
    await test.system.start('dedup')
    await publishRaw(
      test,
      sent.map((id, n) => rawEvent(id, `again ${n}`)),
    )
    await publishRaw(test, [rawEvent('after-restore', 1)])
    await expectOnce([...sent, 'after-restore'])
    expect(await alarms()).toContain('postgres_behind')
  })

  it('notices that Postgres came back older under a running instance, and re-creates what it lost', async () => {
    const sent = ids('restored-live', 100)
    await test.system.start('dedup')
    await publishRaw(
      test,
      sent.map((id, n) => rawEvent(id, n)),
    )
    await expectOnce(sent)
    // A restore ends every connection, and the rows are as they were before.
    await test.db.transaction(async tx => {
      await tx.query(`delete from dedup.claim where event_key_text like 'acme/shop/restored-live-%'`)
      await tx.query(`update weir.owner_position set emitted_below = greatest(0, emitted_below - 50), claimed_at_ms = 0
                      where stage = 'dedup'`)
      await tx.query(`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'weir-dedup'
                      and datname = current_database()`)
    })
    await until('the alarm', async () => (await alarms()).includes('postgres_behind'))
    await publishRaw(
      test,
      sent.map((id, n) => rawEvent(id, `again ${n}`)),
    )
    await expectOnce(sent)
  })

  it('fences an instance frozen past its session', async () => {
    const sent = ids('frozen', 300)
    await test.system.start('dedup')
    await publishRaw(
      test,
      sent.slice(0, 100).map((id, n) => rawEvent(id, n)),
    )
    test.system.supervisor.signal('dedup', 'SIGSTOP')
    await publishRaw(
      test,
      sent.slice(100, 200).map((id, n) => rawEvent(id, n)),
    )
    await test.system.start('dedup', { instance: 'dedup-2', untilReady: false })
    await untilRead(test, group(), test.topics.raw)
    test.system.supervisor.signal('dedup', 'SIGCONT')
    await until('the alarm', async () => (await alarms()).includes('session_lost'))
    await publishRaw(
      test,
      [...sent].map((id, n) => rawEvent(id, `again ${n}`)),
    )
    await expectOnce(sent)
  })
})

describe('hostile records', () => {
  it('parks each with a reason, and later events flow', async () => {
    await test.system.start('dedup')
    const at = (value: Buffer | null, key: Buffer | null = null) => ({
      topic: test.topics.raw,
      partition: 1,
      key,
      value,
      headers: [],
    })
    const unknownSchema = Buffer.concat([Buffer.from([0, 0x7f, 0xff, 0xff, 0xf0]), Buffer.from('data')])
    const foreign = { ...rawEvent('foreign', 1), eventKey: rawEvent('other', 1).eventKey }
    await publish(test, [
      at(null),
      at(Buffer.alloc(0)),
      at(Buffer.from('not avro')),
      at(unknownSchema),
      at(Buffer.concat([test.codec.encode('RawEvent', rawEvent('cut', 1)).subarray(0, 40)])),
      at(test.codec.encode('RawEvent', foreign)),
    ])
    await publishRaw(test, [rawEvent('after-poison', 1)])
    await expectOnce(['after-poison'])
    const parked = await dumpLog(test.urls.WEIR_KAFKA_BROKERS, [test.topics.parked])
    const reasons = parked.map(record => record.headers.get('weir-parked-reason')?.toString())
    expect(reasons.toSorted((a, b) => (a ?? '').localeCompare(b ?? ''))).toEqual([
      'empty',
      'empty',
      'invalid_event',
      'malformed',
      'malformed',
      'schema_unknown',
    ])
  })
})

/** Alarm kinds in the metrics of the running instance. */
async function alarms(): Promise<string> {
  const response = await fetch(`${test.system.instance('dedup').adminUrl}/metrics`)
  const lines = (await response.text()).split('\n').filter(line => line.startsWith('weir_stage_alarms_total'))
  return lines.join('\n')
}
