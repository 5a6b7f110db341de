import {
  fenced,
  WeirError,
  type ClaimContext,
  type LogPosition,
  type LogRecord,
  type OutRecord,
  type Ownership,
  type StageBatch,
  type StageHandler,
  type StageVerdict,
} from '@weir/core'
import type { Decision } from '@weir/schemas'
import { outputsOf } from './domain/outputs.ts'
import type { OutputContext } from './domain/records.ts'
import { deliveryRestorationOf } from './domain/restore-deliveries.ts'
import { restorationOf } from './domain/restore.ts'
import { judgeBatch, type Answer, type JudgedBatch } from './service/batch-judge.ts'
import { DeadlineWatch } from './service/deadline-watch.ts'
import { Expiry } from './service/expiry.ts'
import type { PolicyOptions } from './service/policy-options.ts'
import { Releaser } from './service/releaser.ts'
import { judgeReports } from './service/report-judge.ts'

export type { PolicyOptions } from './service/policy-options.ts'

/** Decisions restored by one call: bounds the statement when much was lost. */
const restoreChunk = 1_000

/** What runs between the batches of one partition number. */
interface Periodic {
  readonly releaser: Releaser
  readonly deadlines: DeadlineWatch
  readonly expiry: Expiry
}

/** Verdicts, budgets and deliveries: the stage handler of `weir.events`, `weir.released` and `weir.outcomes`. */
export class PolicyService implements StageHandler {
  readonly #options: PolicyOptions
  readonly #periodic = new Map<number, Periodic>()
  /** Deliveries that the batch in hand ends: their waiting rows go when it is known committed. */
  readonly #ending = new Map<number, readonly string[]>()

  constructor(options: PolicyOptions) {
    this.#options = options
  }

  async begin(ownership: Ownership): Promise<void> {
    this.#periodic.set(ownership.partition, {
      releaser: new Releaser(this.#options),
      deadlines: new DeadlineWatch(this.#options),
      expiry: new Expiry(this.#options),
    })
    this.#ending.delete(ownership.partition)
    this.#shareRates()
    // The former owner may have ended between a commit and the deletion that follows it. Positions are stored by then.
    if (!(await this.#options.ledger.settle(ownership, [], null))) throw fenced(ownership)
  }

  end(partition: number): void {
    this.#periodic.delete(partition)
    this.#ending.delete(partition)
    this.#options.metrics.forget(partition)
    this.#shareRates()
  }

  async claim(batch: StageBatch, context: ClaimContext): Promise<StageVerdict> {
    const startedAtMs = this.#options.clock.nowMs()
    const output = this.#outputContext(batch)
    if (batch.topic === this.#options.topics.outcomes) return await this.#claimReports(batch, context, output)
    const judged = await judgeBatch(this.#options, batch, context, output)
    if (judged === null) return { kind: 'fenced' }
    this.#noteWaiting(batch.partition, judged.answers)
    this.#options.metrics.claimed((this.#options.clock.nowMs() - startedAtMs) / 1_000)
    return { kind: 'emit', records: recordsOf(output, batch, judged) }
  }

  async #claimReports(batch: StageBatch, context: ClaimContext, output: OutputContext): Promise<StageVerdict> {
    const judged = await judgeReports(this.#options, batch, context, output)
    if (judged === null) return { kind: 'fenced' }
    if (judged.ended.length > 0) this.#ending.set(batch.partition, judged.ended)
    if (judged.hasWaiting) this.#periodic.get(batch.partition)?.releaser.wake()
    return { kind: 'emit', records: judged.records }
  }

  async reroute(batch: StageBatch, context: ClaimContext, topic: string, code: string): Promise<StageVerdict> {
    const { topics, ledger, log } = this.#options
    if (!topic.startsWith(topics.agentPrefix)) {
      throw new WeirError('topic_missing', `topic ${topic} does not take what policy writes (${code})`, {
        context: { topic, code, partition: batch.partition },
      })
    }
    const output = this.#outputContext(batch)
    const judged = await judgeBatch(this.#options, batch, context, output)
    if (judged === null) return { kind: 'fenced' }
    const agent = topic.slice(topics.agentPrefix.length)
    const refused = judged.answers.filter(({ row }) => row.agent === agent && row.verdict === 'allow')
    const override = { code, detail: `topic ${topic} refused this batch: ${code}` }
    const deliveries = refused.map(({ row }) => ({ decisionId: row.decisionId, attempt: row.attempt }))
    if (!(await ledger.park(context.ownership, deliveries, { ...override, atMs: judged.nowMs })))
      return { kind: 'fenced' }
    log.error(
      { topic, code, deliveries: deliveries.length },
      'an agent topic refuses records; its deliveries are parked',
    )
    const isRefused = new Set(refused)
    const answers = judged.answers.map(answer =>
      isRefused.has(answer) ? { ...answer, row: { ...answer.row, override: answer.row.override ?? override } } : answer,
    )
    this.#noteWaiting(batch.partition, answers)
    return { kind: 'emit', records: recordsOf(output, batch, { ...judged, answers }) }
  }

  async committed(batch: StageBatch, context: ClaimContext): Promise<void> {
    const ids = this.#ending.get(batch.partition) ?? []
    this.#ending.delete(batch.partition)
    if (ids.length === 0) return
    this.#options.faultPoint('policy.before-waiting-delete')
    if (!(await this.#options.ledger.settle(context.ownership, context.committed, ids))) throw fenced(context.ownership)
    this.#periodic.get(batch.partition)?.releaser.wake()
  }

  async tick(ownership: Ownership, committed: readonly LogPosition[]): Promise<void> {
    const periodic = this.#periodic.get(ownership.partition)
    await periodic?.releaser.tick(ownership, committed)
    await periodic?.deadlines.tick(ownership, committed)
    await periodic?.expiry.tick(ownership, committed)
  }

  async rebuild(outputs: readonly LogRecord[], ownership: Ownership): Promise<{ readonly restored: number }> {
    const decisions = await this.#decisionsOf(outputs)
    let restored = 0
    for (let from = 0; from < decisions.length; from += restoreChunk) {
      const chunk = decisions.slice(from, from + restoreChunk)
      const missing = await this.#options.ledger.restore(ownership, restorationOf(chunk))
      const open = await this.#options.deliveries.restoreDeliveries(ownership, deliveryRestorationOf(chunk))
      if (missing === null || open === null) throw fenced(ownership)
      restored += missing + open
    }
    return { restored }
  }

  async #decisionsOf(outputs: readonly LogRecord[]): Promise<Decision[]> {
    const { codec, topics, log } = this.#options
    const decisions: Decision[] = []
    for (const record of outputs) {
      if (record.topic !== topics.decisions) continue
      const decoded = await codec.decodeDecision(record)
      if (decoded.kind === 'ok') decisions.push(decoded.value)
      else
        log.error(
          { offset: record.offset, detail: decoded.detail },
          'a decision is not readable: its rows are not rebuilt',
        )
    }
    return decisions
  }

  #noteWaiting(partition: number, answers: readonly Answer[]): void {
    // A refused delivery ends at its first attempt too, and need not keep its bytes.
    const ended = answers.filter(
      ({ item, row }) => row.override !== null || (item.release !== null && row.verdict !== 'defer'),
    )
    this.#ending.set(
      partition,
      ended.map(({ row }) => row.decisionId),
    )
    if (answers.some(({ row }) => row.verdict === 'defer')) this.#periodic.get(partition)?.releaser.wake()
  }

  #shareRates(): void {
    this.#options.limiter.setShare(this.#periodic.size / this.#options.partitions)
  }

  #outputContext(batch: StageBatch): OutputContext {
    const { topics, codec } = this.#options
    const encodeDecision = (decision: Decision): Buffer => codec.encodeDecision(decision)
    return { topics, logId: batch.logId, partition: batch.partition, encodeDecision }
  }
}

function recordsOf(output: OutputContext, batch: StageBatch, judged: JudgedBatch): OutRecord[] {
  const byOffset = new Map<number, OutRecord[]>()
  for (const { item, row } of judged.answers) {
    byOffset.set(row.offset, [...(byOffset.get(row.offset) ?? []), ...outputsOf(output, item, row)])
  }
  return batch.records.flatMap(({ offset }) => [
    ...(judged.unreadable.get(offset) ?? []),
    ...(byOffset.get(offset) ?? []),
  ])
}
