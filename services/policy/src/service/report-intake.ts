import { WeirError, type OutRecord } from '@weir/core'
import { outcomeRecord, type EventFields, type Said } from '../domain/outcome-record.ts'
import type { DeliveryDirectory, FoundDelivery } from '../ports.ts'
import type { PolicyOptions } from './policy-options.ts'

export interface IntakeOptions extends Pick<PolicyOptions, 'topics' | 'publisher' | 'codec' | 'clock'> {
  readonly directory: DeliveryDirectory
}

export type ReportSaid = Omit<Said, 'agent' | 'atMs'>

export type ReportAnswer =
  /** It is in Kafka, acknowledged; `state` is that of the delivery before it. */
  | { readonly kind: 'accepted'; readonly state: string }
  /** This agent was not given such an attempt. */
  | { readonly kind: 'unknown' }

/** Takes what agents report: into weir.outcomes, acknowledged, before the answer. What follows from it is decided there, in order. */
export class ReportIntake {
  readonly #options: IntakeOptions

  constructor(options: IntakeOptions) {
    this.#options = options
  }

  async take(agent: string, said: readonly ReportSaid[]): Promise<readonly ReportAnswer[]> {
    const { directory, publisher, clock } = this.#options
    const found = new Map(
      (await directory.find(said.map(({ decisionId }) => decisionId))).map(row => [row.decisionId, row]),
    )
    const records: OutRecord[] = []
    const answers: ReportAnswer[] = []
    for (const report of said) {
      const delivery = found.get(report.decisionId)
      if (delivery === undefined || delivery.agent !== agent || report.attempt > delivery.attempt) {
        answers.push({ kind: 'unknown' })
        continue
      }
      records.push(await this.#recordOf(delivery, { ...report, agent, atMs: clock.nowMs() }))
      answers.push({ kind: 'accepted', state: delivery.state })
    }
    if (records.length > 0) await publisher.publish(records)
    return answers
  }

  async deliveryOf(agent: string, decisionId: string): Promise<FoundDelivery> {
    const [delivery] = await this.#options.directory.find([decisionId])
    if (delivery !== undefined && delivery.agent === agent) return delivery
    throw new WeirError('not_found', `agent ${agent} has no delivery ${decisionId}`, {
      publicDetail: 'This agent has no such delivery. The id is in the header ce_decisionid of the message.',
    })
  }

  async #recordOf(delivery: FoundDelivery, said: Said): Promise<OutRecord> {
    const { codec, topics } = this.#options
    const { tenant, orderingKey, eventKey } = delivery
    let fields: EventFields = { tenant, orderingKey, eventKey, eventKeyText: eventKey.toString('hex') }
    if (delivery.event !== null) {
      const decoded = await codec.decodeEvent(delivery.event)
      if (decoded.kind === 'ok') fields = decoded.value
    }
    return {
      topic: topics.outcomes,
      partition: delivery.partition,
      key: Buffer.from(orderingKey, 'utf8'),
      value: codec.encodeOutcome(outcomeRecord(said, fields)),
      headers: [],
    }
  }
}
