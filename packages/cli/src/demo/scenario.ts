// The main job on real input: what is sent, and by which rule it must end where.
import { randomUUID } from 'node:crypto'
import { eventKey } from '@weir/core'
import type { LocalSecrets } from '@weir/system'
import type { Sender } from './client.ts'
import type { Choice, Expected } from './ledger.ts'
import {
  apiRequest,
  deployRequest,
  githubRequest,
  githubSamples,
  shopRequest,
  stripeEvent,
  stripeRequest,
  type Outgoing,
} from './requests.ts'

/** What the scenario accepted and expects; the ledger compares it with what arrived. */
export class Scenario {
  readonly expected: Expected[] = []
  readonly choices: Choice[] = []
  readonly orders: string[][] = []
  /** Requests that must be refused, by code. The truncated body has a signature of the whole one, so it is a forgery. */
  readonly refused = { bad_signature: 3, malformed: 1, too_large: 1, unknown_source: 1, duplicate_event_key: 1 }
  /** Requests that end without an answer: the sender hung up. */
  readonly unanswered = 1
  /** Deliveries answered 2xx, repeats too. */
  accepted = 0
  readonly #sender: Sender
  readonly #secrets: LocalSecrets
  readonly #id = randomUUID().slice(0, 8)

  constructor(sender: Sender, secrets: LocalSecrets) {
    this.#sender = sender
    this.#secrets = secrets
  }

  /** The order that Stripe and the shop both report: the story told at the end. */
  get storyOrder(): { readonly customer: string; readonly orderId: string } {
    return { customer: `cus_${this.#id}_0`, orderId: `order-${this.#id}-0` }
  }

  /** 64 real payloads; one of them is sent 34 times at once. Routes: all to triage, issues and pull requests to watch as well. */
  async github(): Promise<void> {
    const all = githubSamples()
    const watched = all.filter(({ type }) => isWatchedType(type)).slice(0, 16)
    const samples = [...watched, ...all.filter(sample => !watched.includes(sample)).slice(0, 48)]
    await inLanes(8, samples, async (sample, i) => {
      const delivery = randomUUID()
      const times = i === 10 ? 34 : 1
      const request = githubRequest(this.#secrets, sample, delivery)
      this.#expect('acme', 'github', delivery, isWatchedType(sample.type) ? ['triage', 'watch'] : ['triage'])
      await Promise.all(Array.from({ length: times }, async () => await this.#deliver(request)))
    })
  }

  /** 40 Stripe events; `again` delivers each a second time, signed anew as Stripe does. Ten report a stage of an order. */
  async stripe(): Promise<{ again: () => Promise<void> }> {
    const requests = Array.from({ length: 40 }, (_, i) => {
      const id = `evt_${this.#id}_${i}`
      const order = i < 10 ? { orderId: `order-${this.#id}-${i}`, stage: 'paid' } : null
      this.#expect('acme', 'stripe', id, ['billing'])
      return stripeRequest(this.#secrets, stripeEvent(id, 'payment_intent.succeeded', `cus_${this.#id}_${i}`, order))
    })
    const all = async (): Promise<void> => await inLanes(8, requests, async request => await this.#deliver(request))
    await all()
    return { again: all }
  }

  /** 20 Standard Webhooks messages; five report an order and stage that Stripe reports too: one business action each. */
  async shop(): Promise<void> {
    const numbers = Array.from({ length: 20 }, (_, i) => i)
    await inLanes(4, numbers, async i => {
      const id = `msg_${this.#id}_${i}`
      const isShared = i < 5
      const orderId = `order-${this.#id}-${isShared ? i : `shop-${i}`}`
      const data = { order_id: orderId, stage: isShared ? 'paid' : 'shipped', customer: `cus_${this.#id}_${i}` }
      this.#expect('acme', 'shop', id, ['billing'])
      if (isShared) {
        const keys = [keyOf('acme', 'stripe', `evt_${this.#id}_${i}`), keyOf('acme', 'shop', id)]
        this.choices.push({ name: `order ${orderId} paid`, agent: 'billing', keys, exactly: 1 })
      }
      await this.#deliver(
        shopRequest(this.#secrets, id, { type: 'order.updated', timestamp: '2026-01-01T00:00:00Z', data }),
      )
    })
  }

  /** 20 CloudEvents in binary, structured and batch mode; 14 belong to one run whose ceiling is 10. */
  async cloudEvents(): Promise<void> {
    const source = `https://demo.example/${this.#id}`
    const events = Array.from({ length: 20 }, (_, i) => ({
      specversion: '1.0',
      id: `ce-${i}`,
      source,
      type: 'invoice.step',
      subject: `invoice-${i}`,
      datacontenttype: 'application/json',
      ...(i < 14 ? { runid: `run-${this.#id}` } : {}),
      data: { step: i, exact: 1 },
    }))
    const keys = events.map(event => this.#expect('acme', 'acme-api', `${source} ${event.id}`, ['billing']))
    this.choices.push({ name: `run run-${this.#id}`, agent: 'billing', keys: keys.slice(0, 14), exactly: 10 })
    const structured = { 'content-type': 'application/cloudevents+json' }
    for (const event of events.slice(0, 10)) {
      const { data, specversion, datacontenttype, ...attributes } = event
      const headers = Object.entries({ specversion, ...attributes }).map(([name, value]) => [`ce-${name}`, value])
      const all = { 'content-type': datacontenttype, ...(Object.fromEntries(headers) as Record<string, string>) }
      await this.#deliver(apiRequest(this.#secrets, Buffer.from(JSON.stringify(data)), all))
    }
    for (const event of events.slice(10, 15)) {
      await this.#deliver(apiRequest(this.#secrets, Buffer.from(JSON.stringify(event)), structured))
    }
    const batch = Buffer.from(JSON.stringify(events.slice(15)))
    await this.#deliver(apiRequest(this.#secrets, batch, { 'content-type': 'application/cloudevents-batch+json' }))
    this.accepted += events.length - 15 - 1
  }

  /** A tenant far over its rate of 5 a second: deferred, then delivered in the order of each service. */
  async deploys(): Promise<void> {
    const services = ['search', 'checkout', 'mail']
    await Promise.all(
      services.map(async service => {
        const keys: string[] = []
        for (let i = 0; i < 10; i++) {
          const id = `deploy-${this.#id}-${service}-${i}`
          keys.push(this.#expect('globex', 'deploys', id, ['ops']))
          await this.#deliver(deployRequest(this.#secrets, id, { service: `${service}-${this.#id}`, version: i }))
        }
        this.orders.push(keys)
      }),
    )
  }

  /** The same API event twice: the second is answered 409 and names the first. */
  async apiDuplicate(): Promise<void> {
    const body = Buffer.from(JSON.stringify({ event_key: `once-${this.#id}`, type: 'invoice.paid', data: { n: 1 } }))
    const request = apiRequest(this.#secrets, body, { 'content-type': 'application/json' })
    this.#expect('acme', 'acme-api', `once-${this.#id}`, ['billing'])
    await this.#deliver(request)
    const again = await this.#sender.send(request)
    if (again.code !== 'duplicate_event_key') throw new Error(`a repeat was answered ${again.status} ${again.code}`)
  }

  /** What must be refused: forged, cut, too large, unknown. */
  async hostile(): Promise<void> {
    const sample = githubSamples()[0]
    if (sample === undefined) throw new Error('there are no GitHub payloads')
    const github = githubRequest(this.#secrets, sample)
    const forged = { 'x-hub-signature-256': `sha256=${'0'.repeat(64)}` }
    const truncated: Outgoing = { ...github, body: github.body.subarray(0, 100) }
    const json = { 'content-type': 'application/json' }
    await this.#sender.send(github, forged)
    await this.#sender.send(shopRequest(this.#secrets, 'msg_forged', { type: 'x' }), { 'webhook-signature': 'v1,AAAA' })
    await this.#sender.send(truncated)
    await this.#sender.send(apiRequest(this.#secrets, Buffer.from('{"event_key":"cut","ty'), json))
    await this.#sender.cutOff(github)
    await this.#sender.send({ ...github, body: Buffer.alloc(2 * 1_048_576, 0x20) })
    await this.#sender.send({ ...github, path: '/v1/webhooks/nobody' })
  }

  async #deliver(request: Outgoing): Promise<void> {
    await this.#sender.deliver(request)
    this.accepted += 1
  }

  #expect(tenant: string, source: string, eventId: string, agents: readonly string[]): string {
    const key = keyOf(tenant, source, eventId)
    this.expected.push({ key, name: `${tenant}/${source}/${eventId}`, agents })
    return key
  }
}

/** The route `github-watch` of weir.yaml. */
function isWatchedType(type: string): boolean {
  return type.startsWith('issues.') || type.startsWith('pull_request.')
}

function keyOf(tenant: string, source: string, eventId: string): string {
  return eventKey(tenant, source, eventId).toString('hex')
}

/** Works through a list with so many at once. */
async function inLanes<T>(
  lanes: number,
  items: readonly T[],
  work: (item: T, i: number) => Promise<void>,
): Promise<void> {
  let next = 0
  const lane = async (): Promise<void> => {
    for (let i = next++; i < items.length; i = next++) await work(items[i] as T, i)
  }
  await Promise.all(Array.from({ length: lanes }, lane))
}
