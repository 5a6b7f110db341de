// Whether a stage counts as alive, over the simulated broker in simulated time.
import { WeirError, type Log, type OwnerStore, type StageHandler, type StageVerdict } from '@weir/core'
import { describe, expect, it } from 'vitest'
import { createManualScheduler, type ManualScheduler } from '../simulator/scheduler.ts'
import { createSimulatedBroker } from '../simulator/simulated-broker.ts'
import { SimulatedCluster } from '../simulator/simulated-cluster.ts'
import { runStage, type RunningStage } from './run-stage.ts'

const noProgressMs = 10_000
const quiet: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => quiet,
}
const emitNothing: StageVerdict = { kind: 'emit', records: [] }

function ownersInMemory(): OwnerStore {
  let epoch = 0n
  return {
    takeOver: (stage, partition) => {
      epoch += 1n
      return Promise.resolve({ ownership: { stage, partition, epoch }, positions: [] })
    },
    advance: ownership => Promise.resolve(ownership.epoch === epoch),
  }
}

/** A stage over one input partition with one record, whose claim does what is given. */
async function startStage(claim: () => Promise<StageVerdict>) {
  const scheduler = createManualScheduler()
  const cluster = new SimulatedCluster(scheduler)
  cluster.createTopic({ topic: 'in', partitions: 1 })
  cluster.createTopic({ topic: 'out', partitions: 1 })
  cluster.appendPlain({ topic: 'in', partition: 0, key: null, value: Buffer.from('event'), headers: [] })
  const handler: StageHandler = {
    claim,
    reroute: claim,
    rebuild: () => Promise.resolve({ restored: 0 }),
    begin: () => Promise.resolve(),
    end: () => undefined,
  }
  const sleep = (ms: number, signal: AbortSignal): Promise<void> =>
    new Promise(resolve => {
      const done = (): void => {
        takeBack()
        signal.removeEventListener('abort', done)
        resolve()
      }
      const takeBack = scheduler.after(ms, done)
      signal.addEventListener('abort', done)
    })
  const started = runStage({
    stage: 'test',
    group: 'g',
    inputs: ['in'],
    ownOutputs: ['out'],
    transactionalIdPrefix: 'test.',
    broker: createSimulatedBroker({ cluster }),
    owners: ownersInMemory(),
    handler,
    log: quiet,
    clock: scheduler,
    sleep,
    noProgressMs,
  })
  await scheduler.advance(5_000)
  return { scheduler, stage: await started }
}

async function stop(scheduler: ManualScheduler, stage: RunningStage): Promise<void> {
  const stopped = stage.stop()
  await scheduler.advance(60_000)
  await stopped
}

describe('a running stage', () => {
  it('stays live for as long as a store is away, and goes on when it is back', async () => {
    let isAway = true
    let claims = 0
    const { scheduler, stage } = await startStage(() => {
      claims++
      return isAway
        ? Promise.reject(new WeirError('database_unavailable', 'Postgres does not answer'))
        : Promise.resolve(emitNothing)
    })
    await scheduler.advance(30 * noProgressMs)
    expect(claims).toBeGreaterThan(10)
    expect(stage.live()).toBeNull()
    isAway = false
    await scheduler.advance(noProgressMs)
    const claimsWhenBack = claims
    await scheduler.advance(2 * noProgressMs)
    expect(stage.ready()).toBeNull()
    expect(claims).toBe(claimsWhenBack)
    await stop(scheduler, stage)
  })

  it('is not live when a claim neither ends nor fails', async () => {
    const claim = Promise.withResolvers<StageVerdict>()
    const { scheduler, stage } = await startStage(() => claim.promise)
    await scheduler.advance(2 * noProgressMs)
    expect(stage.live()).toBe(`partition 0 has not moved for ${noProgressMs} ms`)
    claim.resolve(emitNothing)
    await stop(scheduler, stage)
  })

  it('is not live when every claim fails for a reason that waiting does not cure', async () => {
    const { scheduler, stage } = await startStage(() => Promise.reject(new Error('a bug')))
    await scheduler.advance(2 * noProgressMs)
    expect(stage.live()).toBe(`partition 0 has not moved for ${noProgressMs} ms`)
    await stop(scheduler, stage)
  })
})
