// Whoever appends to weir.raw: one delivery after the other, each after the answer to the one before.
import { partitionOf, sha256, uuidV5, type Publisher } from '@weir/core'
import { createSimulatedBroker, lostAnswer } from '@weir/kafka'
import { rawEvent } from '../support/raw-event.ts'
import type { Sent } from './monitor.ts'
import { Life } from './network.ts'
import { objectName, type Delivery } from './scenario.ts'
import type { World } from './context.ts'

export class Senders {
  readonly #world: World
  #open = 0

  constructor(world: World) {
    this.#world = world
  }

  /** Whether some delivery has no answer yet. */
  get isBusy(): boolean {
    return this.#open > 0
  }

  start(): void {
    const { deliveries } = this.#world.scenario
    for (const sender of new Set(deliveries.map(delivery => delivery.sender))) {
      const mine = deliveries.flatMap((delivery, number) => (delivery.sender === sender ? [{ delivery, number }] : []))
      this.#run(`sender ${sender}`, mine)
    }
  }

  /** The same bytes once more, as a sender that had no answer sends them. */
  copy(which: number): void {
    const acked = this.#world.monitor.sent.filter(sent => sent.ackedAtStep !== null)
    const original = acked[which % Math.max(1, acked.length)]
    const delivery = original === undefined ? undefined : this.#world.scenario.deliveries[original.number]
    if (original === undefined || delivery === undefined) return
    this.#run(
      'a proxy that repeats',
      [{ delivery: { ...delivery, pauseMs: 0 }, number: original.number }],
      original.deliveryId,
    )
  }

  #run(
    name: string,
    mine: readonly { readonly delivery: Delivery; readonly number: number }[],
    deliveryId?: string,
  ): void {
    this.#open++
    const life = new Life(name)
    const { network, cluster, timeline } = this.#world
    const wire = {
      call: <T>(request: { readonly kind: string; readonly text: string }, perform: () => T | Promise<T>) =>
        network.call(life, { service: 'kafka', ...request, lost: () => lostAnswer(request.text) }, perform),
    }
    const sleep = (ms: number): Promise<void> => new Promise(resolve => void timeline.after(ms, resolve))
    const work = async (): Promise<void> => {
      const publisher = await createSimulatedBroker({ cluster, wire }).openPublisher()
      for (const { delivery, number } of mine) {
        await sleep(delivery.pauseMs)
        await this.#send(name, publisher, { delivery, number, deliveryId })
      }
    }
    work().then(
      () => this.#open--,
      (error: unknown) => this.#world.monitor.violate('senders get answers', `${name}: ${String(error)}`),
    )
  }

  async #send(
    name: string,
    publisher: Publisher,
    what: { readonly delivery: Delivery; readonly number: number; readonly deliveryId: string | undefined },
  ): Promise<void> {
    const { delivery, number } = what
    const { codec, timeline, topics, scenario, monitor, cluster, alter } = this.#world
    const object = objectName(delivery.object)
    const id = `event-${delivery.event}`
    const data = Buffer.from(delivery.changed ? `${id} changed by ${number}` : id)
    const event = rawEvent(id, number, {
      deliveryId: what.deliveryId ?? uuidV5(['simulated delivery', String(number)]),
      orderingKey: `acme/${object}`,
      object,
      data,
      payloadDigest: sha256(data),
      run: `run-${delivery.object}`,
      businessKey: delivery.business === null ? null : { space: 'orders', value: String(delivery.business) },
    })
    const right = alter.partitionOf?.(event.orderingKey, event.eventKeyText, scenario.partitions)
    const own = right ?? partitionOf(event.orderingKey, scenario.partitions)
    const partition = delivery.kind === 'misplaced' ? (own + 1) % scenario.partitions : own
    const isReadable = delivery.kind !== 'unreadable'
    const sent: Sent = {
      number,
      event: delivery.event,
      eventKey: event.eventKey.toString('hex'),
      orderingKey: event.orderingKey,
      deliveryId: event.deliveryId,
      isReadable,
      isMisplaced: partition !== own,
      business: delivery.business,
      sentAtStep: timeline.steps,
      ackedAtStep: null,
      offset: null,
      partition,
      logId: cluster.topic(topics.raw)?.logId ?? '',
    }
    monitor.sent.push(sent)
    this.#world.note(
      name,
      `sends delivery ${number} of event ${delivery.event} (${object})${isReadable ? '' : ', unreadable'}`,
    )
    const value = isReadable ? codec.encodeEvent(event) : Buffer.from('unreadable')
    const record = { topic: topics.raw, partition, key: event.eventKey, value, headers: [] }
    const [ack] = await publisher.publish([record])
    sent.ackedAtStep = timeline.steps
    sent.offset = ack?.offset ?? null
    this.#world.note(name, `has the answer to delivery ${number}: offset ${ack?.offset} of ${topics.raw}-${partition}`)
  }
}
