// One instance of a service as its main.ts wires it, over the simulated ports.
import type { Broker, Clock, Log, OwnerStore, StageHandler } from '@weir/core'
import { WeirError } from '@weir/core'
import { DedupService, createSourceRules } from '@weir/dedup'
import { createSimulatedBroker, lostAnswer, runStage, type RunningStage, type StageOptions } from '@weir/kafka'
import { Life, type Service } from './network.ts'
import type { StageName } from './scenario.ts'
import { createPolicyHandler } from './policy-instance.ts'
import type { World } from './context.ts'

const restartMs = 300
const stopDeadlineMs = 3_000
export const sessionTimeoutMs = 1_000
/** Longer than a service waits: a broker may answer late, and a quiet world need not be asked often. */
const fetchWaitMs = 2_000

export class Instance {
  readonly name: string
  readonly stage: StageName
  readonly #world: World
  #life: Life
  #lives = 0
  #stages: RunningStage[] = []
  #thaw: (() => void) | null = null
  #thawTimer: (() => void) | null = null
  #broker = createSimulatedBroker()
  #skewMs = 0
  #isRetired = false
  #numbers: readonly number[] = []
  forget: () => void = () => undefined

  constructor(world: World, stage: StageName, name: string) {
    this.#world = world
    this.stage = stage
    this.name = name
    this.#life = new Life(name)
    this.#life.end()
  }

  get life(): Life {
    return this.#life
  }

  get isRunning(): boolean {
    return this.#isRetired || (!this.#life.isDead && !this.#life.isFrozen && this.#stages.length > 0)
  }

  /** Partition numbers it works on. */
  get numbers(): readonly number[] {
    return this.isRunning && this.complaint === null ? this.#numbers : []
  }

  /** Why it does not work, or null. */
  get complaint(): string | null {
    if (this.#isRetired) return null
    if (this.#life.isDead) return 'is not running'
    for (const stage of this.#stages) if (stage.ready() !== null) return stage.ready()
    return null
  }

  start(): void {
    if (this.#isRetired || !this.#life.isDead) return
    const life = new Life(`${this.name}${this.#lives === 0 ? '' : `#${this.#lives + 1}`}`)
    this.#lives++
    this.#life = life
    this.#stages = []
    this.#numbers = []
    const { cluster } = this.#world
    this.#broker = createSimulatedBroker({
      cluster,
      wire: { call: (request, perform) => this.#call(life, request, perform) },
    })
    this.#world.note(life.name, 'starts')
    for (const options of this.#options(life)) {
      runStage(options).then(
        stage => life.deliver(() => this.#stages.push(stage)),
        () => life.deliver(() => this.kill()),
      )
    }
  }

  kill(): void {
    if (this.#life.isDead) return
    this.#world.note(this.#life.name, 'is killed')
    this.#end()
    this.#world.timeline.after(restartMs, () => this.start())
  }

  /** Does nothing for so long, then goes on as if nothing had been. */
  freeze(ms: number): void {
    if (this.#life.isDead || this.#life.isFrozen) return
    const life = this.#life
    this.#world.note(life.name, `freezes for ${ms} ms`)
    life.freeze()
    this.#thaw = this.#broker.freeze()
    this.#thawTimer = this.#world.timeline.after(ms, () => {
      if (life.isDead) return
      this.#world.note(life.name, 'goes on')
      this.#thaw?.()
      life.thaw(this.#world.timeline)
    })
  }

  /** SIGTERM: finishes the batch in hand, leaves, and is started again (or not). */
  stop(options: { readonly forGood: boolean } = { forGood: false }): void {
    const life = this.#life
    if (life.isDead || life.isFrozen || this.#stages.length === 0) return
    this.#world.note(life.name, 'is asked to stop')
    const ended = (): void => {
      if (life.isDead) return
      this.#world.note(life.name, 'has stopped')
      this.#isRetired = options.forGood
      this.#end()
      this.#world.timeline.after(restartMs, () => this.start())
    }
    const tooLate = this.#world.timeline.after(stopDeadlineMs, ended)
    void Promise.all(this.#stages.map(stage => stage.stop())).then(
      () =>
        life.deliver(() => {
          tooLate()
          ended()
        }),
      () => undefined,
    )
  }

  storeLost(): void {
    this.#life.deliver(() => {
      for (const stage of this.#stages) stage.storeLost('the connection to Postgres was lost')
    })
  }

  jumpClock(ms: number): void {
    this.#skewMs += ms
  }

  #end(): void {
    this.#thawTimer?.()
    this.#life.end()
    this.#broker.freeze()
    this.#stages = []
  }

  #call<T>(
    life: Life,
    request: { readonly kind: string; readonly text: string },
    perform: () => T | Promise<T>,
    service: Service = 'kafka',
  ): Promise<T> {
    const lost = (): Error => lostAnswer(request.text)
    return this.#world.network.call(life, { service, kind: request.kind, text: request.text, lost }, perform)
  }

  /** A call to Postgres: one statement, done at once or not at all. */
  #postgres<T>(life: Life, text: string, perform: () => T): Promise<T> {
    const lost = (): Error => new WeirError('database_unavailable', `Postgres does not answer: ${text}`)
    const request = { service: 'postgres', kind: 'postgres', text, lost } as const
    return this.#world.network.call(life, request, perform)
  }

  #options(life: Life): readonly StageOptions[] {
    const { topics, alter } = this.#world
    const place = { world: this.#world, stage: this.stage, instance: this.name }
    const clock: Clock = { nowMs: () => this.#world.timeline.nowMs() + this.#skewMs }
    const broker = alter.broker?.(this.#brokerOf(life), place) ?? this.#brokerOf(life)
    const handler =
      this.stage === 'dedup'
        ? this.#dedup(life, clock)
        : createPolicyHandler({
            place,
            life,
            clock,
            broker,
            postgres: (text, perform) => this.#postgres(life, text, perform),
          })
    const isDedup = this.stage === 'dedup'
    const options: StageOptions = {
      stage: this.stage,
      group: this.stage,
      transactionalIdPrefix: `${this.stage}.`,
      inputs: isDedup ? [topics.raw] : [topics.events, topics.released],
      ownOutputs: [topics.decisions],
      broker,
      owners: this.#owners(life),
      handler: alter.handler?.(handler, place) ?? handler,
      log: this.#log(life),
      clock,
      sleep: (ms, signal) => this.#sleep(life, ms, signal),
      maxBatchRecords: this.#world.scenario.maxBatchRecords,
      tickMs: isDedup ? 500 : 200,
      sessionTimeoutMs,
    }
    return alter.stage?.(options, place) ?? [options]
  }

  #dedup(life: Life, clock: Clock): StageHandler {
    const { topics, scenario, codec, claims, alter } = this.#world
    const options = {
      topics,
      partitions: scenario.partitions,
      ledger: {
        claim: (input, { ownership, committed }, requests) =>
          this.#postgres(life, `claims ${requests.length} keys of partition ${input.partition}`, () =>
            this.#world.asOwner(life, ownership, () =>
              claims.claim({ partition: input.partition, logId: input.logId, ownership, committed, requests }),
            ),
          ),
        restore: (ownership, rows) =>
          this.#postgres(life, `restores ${rows.length} claims of partition ${ownership.partition}`, () =>
            this.#world.asOwner(life, ownership, () => claims.restore(ownership, rows)),
          ),
      },
      codec,
      sources: createSourceRules({ sources: [], clients: [] }),
      clock,
      metrics: { decided: () => undefined, cacheAnswered: () => undefined, payloadDiffers: () => undefined },
      cacheEntries: scenario.cacheEntries,
      maxEventBytes: 1_048_576,
      faultPoint: () => undefined,
    } satisfies ConstructorParameters<typeof DedupService>[0]
    const place = { world: this.#world, stage: this.stage, instance: this.name }
    const service = new DedupService(alter.dedup?.(options, place) ?? options)
    this.forget = () => service.forget()
    return service
  }

  #owners(life: Life): OwnerStore {
    const { owners, monitor, alter } = this.#world
    const store: OwnerStore = {
      takeOver: (stage, partition) =>
        this.#postgres(life, `takes over ${stage} ${partition}`, () => {
          const taken = owners.takeOver(stage, partition)
          monitor.tookOver(taken.ownership)
          return taken
        }),
      advance: (ownership, positions) => {
        const text = positions.map(({ topic, emittedBelow }) => `${topic} ${emittedBelow}`).join(', ')
        return this.#postgres(life, `stores positions of partition ${ownership.partition}: ${text}`, () =>
          this.#world.asOwner(life, ownership, () => owners.own(ownership, positions)),
        )
      },
    }
    return alter.owners?.(store, { world: this.#world, stage: this.stage, instance: this.name }) ?? store
  }

  #brokerOf(life: Life): Broker {
    const broker = this.#broker
    const world = this.#world
    let lastMs = 0
    /** In order, as one connection has it. */
    const tell = (run: () => void): void => {
      lastMs = Math.max(lastMs, world.timeline.nowMs() + world.network.latencyMs())
      world.timeline.after(lastMs - world.timeline.nowMs(), () => life.deliver(run))
    }
    return {
      ...broker,
      openReader: async () => {
        const reader = await broker.openReader()
        return { ...reader, fetch: request => reader.fetch({ ...request, maxWaitMs: fetchWaitMs }) }
      },
      join: async request => {
        const membership = await broker.join({
          ...request,
          onAssigned: assignment =>
            tell(() => {
              world.note(
                life.name,
                `is told that it owns ${request.group} ${assignment.numbers.join(' and ') || 'nothing'}`,
              )
              this.#numbers = assignment.numbers
              request.onAssigned(assignment)
            }),
        })
        return {
          prove: () => this.#call(life, { kind: 'heartbeat', text: 'shows it is a member' }, () => membership.prove()),
          leave: () => this.#call(life, { kind: 'leave', text: 'leaves its group' }, () => membership.leave()),
        }
      },
    }
  }

  #sleep(life: Life, ms: number, signal: AbortSignal): Promise<void> {
    return new Promise(resolve => {
      if (signal.aborted) {
        resolve()
        return
      }
      const stopTimer = this.#world.timeline.after(ms, () => life.deliver(done))
      const onAbort = (): void => {
        stopTimer()
        resolve()
      }
      const done = (): void => {
        signal.removeEventListener('abort', onAbort)
        resolve()
      }
      signal.addEventListener('abort', onAbort, { once: true })
    })
  }

  #log(life: Life): Log {
    const explain = (fields: object, message: string): void => this.#world.explain(life.name, fields, message)
    const log: Log = {
      debug: () => undefined,
      info: () => undefined,
      warn: explain,
      error: explain,
      child: () => log,
    }
    return log
  }
}
