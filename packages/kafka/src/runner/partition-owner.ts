// The serial loop of one partition number: take over, then read, claim, emit, batch by batch, over all input topics.
import {
  fenced,
  hasCode,
  type ClaimContext,
  type LogPosition,
  type LogReader,
  type Membership,
  type OutRecord,
  type StageBatch,
  type StageVerdict,
  type TransactionResult,
  WeirError,
} from '@weir/core'
import { Prefetch, type Slice } from './prefetch.ts'
import { sleepUnlessAborted, stageDefaults, type StageOptions } from './stage-options.ts'
import { alarm, openWriter, takeOver, type Taken } from './take-over.ts'

/** Errors that a later try cannot cure: the number stays halted until an operator acts. */
const haltingCodes = ['log_changed', 'log_truncated'] as const
const firstBackoffMs = 100
const maxBackoffMs = 5_000
/** While halted, the condition is looked at again this often: the operator's procedure needs no restart. */
const haltedCheckMs = 5_000
/** Longest rest after a small batch: with it a transaction a tenth of a second, as the broker likes. */
const maxRestMs = 75
const restBelowRecords = 250
/** How often the inputs' log ids are looked at while working. */
const checkLogsMs = 1_000

export class PartitionOwner {
  readonly partition: number
  readonly #options: StageOptions
  readonly #membership: () => Promise<Membership>
  readonly #stop = new AbortController()
  readonly #done: Promise<void>
  #batchLimit: number
  #haltedBecause: string | null = null
  #working = false
  #movedAtMs: number
  #retakeBecause: string | null = null

  /** Starts when `after` (the former owner of this number in this process) has ended. */
  constructor(options: StageOptions, partition: number, membership: () => Promise<Membership>, after: Promise<void>) {
    this.#options = options
    this.partition = partition
    this.#membership = membership
    this.#batchLimit = options.maxBatchRecords ?? stageDefaults.maxBatchRecords
    this.#movedAtMs = options.clock.nowMs()
    this.#done = after.then(() => this.#run())
  }

  /** Why this number does not work, or null. */
  get halted(): string | null {
    return this.#haltedBecause
  }

  get working(): boolean {
    return this.#working
  }

  /**
   * How long this loop has neither finished a batch, nor found nothing to do, nor ended a try because something it needs is away,
   * milliseconds.
   */
  stuckMs(nowMs: number): number {
    return Math.max(0, nowMs - this.#movedAtMs)
  }

  /** Takes over again before the next batch: what the stores hold may not be what this owner knows. */
  retake(reason: string): void {
    this.#retakeBecause = reason
  }

  /** Ends after the batch in hand. Resolves when the loop has ended; never rejects. */
  stop(): Promise<void> {
    this.#stop.abort()
    return this.#done
  }

  async #run(): Promise<void> {
    const { log, stage, handler } = this.#options
    let backoffMs = firstBackoffMs
    while (!this.#stop.signal.aborted) {
      const startedAtMs = this.#options.clock.nowMs()
      try {
        await this.#own()
      } catch (error) {
        if (this.#stop.signal.aborted) break
        this.#noteFailure(error)
        // A batch that takes too long anywhere fails again at the same size.
        this.#batchLimit = Math.max(1, Math.floor(this.#batchLimit / 2))
        if (this.#options.clock.nowMs() - startedAtMs > maxBackoffMs) backoffMs = firstBackoffMs
        await this.#sleep(this.#haltedBecause === null ? backoffMs : haltedCheckMs)
        backoffMs = Math.min(backoffMs * 2, maxBackoffMs)
        if (!(await this.#isStillMember())) break
      } finally {
        this.#working = false
        handler.end(this.partition)
      }
    }
    log.info({ stage, partition: this.partition }, 'partition number given up')
  }

  #noteFailure(error: unknown): void {
    const { log, stage } = this.#options
    const fields = { err: error, stage, partition: this.partition }
    if (haltingCodes.some(code => hasCode(error, code))) {
      if (this.#haltedBecause === null) alarm(this.#options, 'halted', this.partition, { err: error })
      this.#haltedBecause = error instanceof Error ? error.message : String(error)
      return
    }
    this.#haltedBecause = null
    if (hasCode(error, 'fenced')) log.info(fields, 'ownership was lost; taking over again if this is still a member')
    else if (error instanceof WeirError && error.retriable) {
      // It lasts as long as what it waits for: a restart would not help, so this is no standstill.
      this.#movedAtMs = this.#options.clock.nowMs()
      log.warn(fields, 'the partition pauses and tries again')
    } else log.error(fields, 'the partition failed and takes over again')
  }

  /** Before a fence is taken again, membership must be proven: otherwise two owners would fence each other for ever. */
  async #isStillMember(): Promise<boolean> {
    while (!this.#stop.signal.aborted) {
      try {
        await (await this.#membership()).prove()
        return !this.#stop.signal.aborted
      } catch (error) {
        this.#options.log.info({ err: error, partition: this.partition }, 'membership is not proven; waiting')
        this.#movedAtMs = this.#options.clock.nowMs()
        await this.#sleep(haltedCheckMs)
      }
    }
    return false
  }

  async #own(): Promise<void> {
    const { broker, handler, clock, observer } = this.#options
    this.#retakeBecause = null
    const startedAtMs = clock.nowMs()
    const scanner = await broker.openReader()
    let taken: Taken
    try {
      taken = await takeOver(this.#options, this.partition, scanner, this.#stop.signal)
    } finally {
      await scanner.close()
    }
    const turn = new Turn(this.#options, this.partition, taken)
    try {
      await handler.begin(taken.ownership)
      await turn.openReaders()
      this.#haltedBecause = null
      this.#working = true
      observer?.takeOver?.(this.partition, (clock.nowMs() - startedAtMs) / 1_000)
      while (!this.#stop.signal.aborted) await this.#step(turn)
      // A store that may have come back older must be compared before it is told where this owner stands.
      if (this.#retakeBecause === null) await turn.advance()
    } finally {
      await turn.close()
    }
  }

  async #step(turn: Turn): Promise<void> {
    if (this.#retakeBecause !== null) throw new WeirError('database_unavailable', this.#retakeBecause)
    const result = await turn.step(this.#batchLimit, this.#stop.signal)
    if (result === 'moved' || result === 'idle') this.#movedAtMs = this.#options.clock.nowMs()
    switch (result) {
      case 'idle':
      case 'waiting':
        return
      case 'moved':
        this.#batchLimit = Math.min(
          this.#batchLimit * 2,
          this.#options.maxBatchRecords ?? stageDefaults.maxBatchRecords,
        )
        return
      case 'unknown':
        throw new WeirError(
          'broker_unavailable',
          `the outcome of a transaction of partition ${this.partition} is unknown`,
        )
    }
  }

  #sleep(ms: number): Promise<void> {
    return (this.#options.sleep ?? sleepUnlessAborted)(ms, this.#stop.signal)
  }
}

/** One ownership from take-over to its end. */
class Turn {
  readonly #options: StageOptions
  readonly #partition: number
  readonly #taken: Taken
  readonly #positions: Map<string, LogPosition>
  #writer: Taken['writer']
  #readers: LogReader[] = []
  #inputs: Prefetch[] = []
  #nextInput = 0
  #tickedAtMs = 0
  #advancedAtMs = 0
  #restUntilMs = 0
  #checkedLogsAtMs = 0
  #isDirty = false

  constructor(options: StageOptions, partition: number, taken: Taken) {
    this.#options = options
    this.#partition = partition
    this.#taken = taken
    this.#writer = taken.writer
    this.#positions = new Map(taken.positions.map(position => [position.topic, position]))
  }

  get #context(): ClaimContext {
    return { ownership: this.#taken.ownership, committed: [...this.#positions.values()] }
  }

  async openReaders(): Promise<void> {
    const maxBytes = this.#options.maxFetchBytes ?? stageDefaults.maxFetchBytes
    for (const position of this.#positions.values()) {
      const reader = await this.#options.broker.openReader()
      this.#readers.push(reader)
      const request = { topic: position.topic, partition: this.#partition, maxBytes }
      this.#inputs.push(new Prefetch(reader, request, position.emittedBelow))
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#writer.close(), ...this.#readers.map(reader => reader.close())])
  }

  async step(limit: number, signal: AbortSignal): Promise<'idle' | 'waiting' | 'moved' | 'unknown'> {
    await this.#pace(signal)
    await this.#checkLogs()
    await this.#tick()
    const found = this.#takeNext(limit)
    if (found === null) {
      await this.#advanceWhenIdle()
      await this.#waitForInput(signal)
      return this.#inputs.every(input => input.isAtEnd) ? 'idle' : 'waiting'
    }
    const { input, slice } = found
    this.#noteLag(input.topic, slice.endOffset - slice.nextOffset)
    // Only control or aborted records: nothing to claim, and no output to commit with.
    if (slice.records.length === 0) return 'moved'
    return this.#claimAndEmit(input.topic, slice)
  }

  /** Stores what is known committed; a restart then reads nothing twice. */
  async advance(): Promise<void> {
    if (!this.#isDirty) return
    if (!(await this.#options.owners.advance(this.#taken.ownership, [...this.#positions.values()])))
      throw fenced(this.#taken.ownership)
    this.#isDirty = false
  }

  async #tick(): Promise<void> {
    const nowMs = this.#options.clock.nowMs()
    if (isWithin(nowMs, this.#tickedAtMs, this.#options.tickMs ?? stageDefaults.tickMs)) return
    this.#tickedAtMs = nowMs
    await this.#options.handler.tick?.(this.#taken.ownership, [...this.#positions.values()])
  }

  async #advanceWhenIdle(): Promise<void> {
    const nowMs = this.#options.clock.nowMs()
    const pauseMs = this.#options.idleAdvanceMs ?? stageDefaults.idleAdvanceMs
    if (!this.#isDirty || isWithin(nowMs, this.#advancedAtMs, pauseMs)) return
    this.#advancedAtMs = nowMs
    await this.advance()
  }

  /** A topic that was created again under a running owner is another log: its offsets mean nothing here. */
  async #checkLogs(): Promise<void> {
    const nowMs = this.#options.clock.nowMs()
    if (isWithin(nowMs, this.#checkedLogsAtMs, checkLogsMs)) return
    this.#checkedLogsAtMs = nowMs
    for (const { topic, logId } of await this.#options.broker.admin.describe(this.#options.inputs)) {
      if (this.#positionOf(topic).logId === logId) continue
      throw new WeirError('log_changed', `topic ${topic} is log ${logId} now and was ${this.#positionOf(topic).logId}`)
    }
  }

  /**
   * A transaction costs the same for one record as for a hundred. After a small one the loop rests for twice its time, so that
   * records gather: the busier the machine, the larger the batches. After a rest of its own length an event waits for nothing.
   */
  async #pace(signal: AbortSignal): Promise<void> {
    const restMs = this.#restUntilMs - this.#options.clock.nowMs()
    this.#restUntilMs = 0
    if (restMs > 0) await (this.#options.sleep ?? sleepUnlessAborted)(Math.min(restMs, maxRestMs), signal)
  }

  /** Inputs take turns, so that none starves the other. */
  #takeNext(limit: number): { input: Prefetch; slice: Slice } | null {
    for (let i = 0; i < this.#inputs.length; i++) {
      const input = this.#inputs[(this.#nextInput + i) % this.#inputs.length]
      const slice = input?.take(limit) ?? null
      if (input === undefined || slice === null) continue
      this.#nextInput = (this.#nextInput + i + 1) % this.#inputs.length
      return { input, slice }
    }
    return null
  }

  async #waitForInput(signal: AbortSignal): Promise<void> {
    const waiting = new AbortController()
    const any = AbortSignal.any([signal, waiting.signal])
    const sleep = this.#options.sleep ?? sleepUnlessAborted
    const tick = sleep(this.#options.tickMs ?? stageDefaults.tickMs, any)
    await Promise.race([...this.#inputs.map(input => input.ready()), tick])
    waiting.abort()
    await tick
  }

  async #claimAndEmit(topic: string, slice: Slice): Promise<'moved' | 'unknown'> {
    const { handler, clock, observer, faultPoint, stage } = this.#options
    const startedAtMs = clock.nowMs()
    const position = this.#positionOf(topic)
    const batch: StageBatch = { topic, logId: position.logId, partition: this.#partition, records: slice.records }
    const claimed = this.#recordsOf(await handler.claim(batch, this.#context))
    faultPoint?.(`${stage}.after-claim`)
    // The same place, of one input only: 0 is the first.
    faultPoint?.(`${stage}.after-claim.${this.#options.inputs.indexOf(topic)}`)
    const result = await this.#emit(batch, slice.nextOffset, claimed)
    if (result === 'unknown') return result
    faultPoint?.(`${stage}.after-commit`)
    this.#moveTo(topic, slice)
    await handler.committed?.(batch, this.#context)
    const endedAtMs = clock.nowMs()
    observer?.batch?.(topic, this.#partition, slice.records.length, (endedAtMs - startedAtMs) / 1_000)
    const isSmall = slice.records.length < restBelowRecords
    this.#restUntilMs = isSmall ? endedAtMs + Math.min(maxRestMs, 2 * (endedAtMs - startedAtMs)) : 0
    return 'moved'
  }

  async #emit(batch: StageBatch, nextOffset: number, claimed: readonly OutRecord[]): Promise<'committed' | 'unknown'> {
    const positions = [{ topic: batch.topic, partition: this.#partition, nextOffset }]
    const refused = new Set<string>()
    let records = claimed
    for (;;) {
      const result = await this.#writer.run({ records, positions })
      if (result.kind === 'committed') return 'committed'
      this.#noteInterruption(result)
      if (result.kind === 'unknown') return 'unknown'
      if (result.kind === 'fenced') throw fenced(this.#taken.ownership)
      if (refused.has(result.topic)) {
        throw new WeirError(
          'internal',
          `topic ${result.topic} refused a record (${result.code}) that was to be parked`,
          {
            cause: result.cause,
          },
        )
      }
      refused.add(result.topic)
      // Fence first, then judge again: whoever took over in between has raised the epoch, and the claim writes nothing.
      await this.#writer.close()
      this.#writer = await openWriter(this.#options, this.#partition)
      const again = await this.#options.handler.reroute(batch, this.#context, result.topic, result.code)
      records = this.#recordsOf(again)
    }
  }

  #noteInterruption(result: TransactionResult): void {
    this.#options.observer?.interrupted?.(this.#partition, result.kind)
    if (result.kind === 'committed' || result.kind === 'fenced') return
    const fields = { err: result.cause, partition: this.#partition, stage: this.#options.stage, kind: result.kind }
    this.#options.log.warn(fields, 'a transaction did not commit')
  }

  #recordsOf(verdict: StageVerdict): readonly OutRecord[] {
    if (verdict.kind === 'fenced') throw fenced(this.#taken.ownership)
    return verdict.records
  }

  #moveTo(topic: string, slice: Slice): void {
    const appendedAtMs = slice.records.at(-1)?.timestampMs ?? 0
    for (const position of this.#positions.values()) {
      this.#positions.set(position.topic, {
        ...position,
        emittedBelow: position.topic === topic ? slice.nextOffset : position.emittedBelow,
        claimedAtMs: Math.max(position.claimedAtMs, appendedAtMs),
      })
    }
    this.#isDirty = true
  }

  #positionOf(topic: string): LogPosition {
    const position = this.#positions.get(topic)
    if (position === undefined) throw new WeirError('internal', `there is no position for topic ${topic}`)
    return position
  }

  #noteLag(topic: string, records: number): void {
    this.#options.observer?.lag?.(topic, this.#partition, records)
  }
}

/** Whether less than `pauseMs` has passed since. A clock that was set back must not make a pause longer. */
function isWithin(nowMs: number, sinceMs: number, pauseMs: number): boolean {
  return nowMs >= sinceMs && nowMs - sinceMs < pauseMs
}
