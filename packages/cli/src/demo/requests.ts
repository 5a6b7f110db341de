// Requests as their senders make them: signed by the vendors' own code where they have some.
import { createHmac, randomUUID } from 'node:crypto'
import examples from '@octokit/webhooks-examples' with { type: 'json' }
import { Webhook } from 'standardwebhooks'
import Stripe from 'stripe'
import type { LocalSecrets } from '@weir/system'

/** A request that can be sent any number of times; headers are made at each sending, as senders sign anew. */
export interface Outgoing {
  readonly path: string
  readonly body: Buffer
  readonly headers: (nowMs: number) => Readonly<Record<string, string>>
}

export interface GithubSample {
  readonly name: string
  readonly body: Buffer
  /** As Weir names it: the event, and its action when it has one. */
  readonly type: string
}

interface Example {
  readonly name: string
  readonly examples: readonly Readonly<Record<string, unknown>>[]
}

/** GitHub's documented payloads, one after another through all kinds of events. */
export function githubSamples(): GithubSample[] {
  const kinds = examples as unknown as readonly Example[]
  const most = Math.max(...kinds.map(kind => kind.examples.length))
  const samples: GithubSample[] = []
  for (let i = 0; i < most; i++) {
    for (const kind of kinds) {
      const payload = kind.examples[i]
      if (payload === undefined) continue
      const action = typeof payload['action'] === 'string' ? `.${payload['action']}` : ''
      samples.push({ name: kind.name, body: Buffer.from(JSON.stringify(payload)), type: kind.name + action })
    }
  }
  return samples
}

export function githubRequest(
  secrets: LocalSecrets,
  sample: GithubSample,
  delivery = randomUUID() as string,
): Outgoing {
  const secret = secrets.environment['WEIR_SECRET_GITHUB'] ?? ''
  const signature = createHmac('sha256', secret).update(sample.body).digest('hex')
  return {
    path: '/v1/webhooks/github',
    body: sample.body,
    headers: () => ({
      'content-type': 'application/json',
      'user-agent': 'GitHub-Hookshot/demo',
      'x-github-event': sample.name,
      'x-github-delivery': delivery,
      'x-hub-signature-256': `sha256=${signature}`,
    }),
  }
}

export interface OrderStage {
  readonly orderId: string
  readonly stage: string
}

/** A Stripe event; `order` puts the metadata there that makes the business key. */
export function stripeEvent(id: string, type: string, customer: string, order: OrderStage | null): Buffer {
  const metadata = order === null ? {} : { order_id: order.orderId, stage: order.stage }
  return Buffer.from(
    JSON.stringify({
      id,
      object: 'event',
      api_version: '2026-01-28',
      created: 1_790_000_000,
      livemode: false,
      pending_webhooks: 1,
      request: { id: null, idempotency_key: null },
      type,
      data: {
        object: {
          id: `pi_${id.slice(4)}`,
          object: 'payment_intent',
          amount: 4200,
          currency: 'eur',
          customer,
          metadata,
          status: 'succeeded',
        },
      },
    }),
  )
}

export function stripeRequest(secrets: LocalSecrets, body: Buffer): Outgoing {
  const stripe = new Stripe('sk_test_demo')
  const secret = secrets.environment['WEIR_SECRET_STRIPE'] ?? ''
  return {
    path: '/v1/webhooks/stripe',
    body,
    headers: nowMs => ({
      'content-type': 'application/json; charset=utf-8',
      'stripe-signature': stripe.webhooks.generateTestHeaderString({
        payload: body.toString('utf8'),
        secret,
        timestamp: Math.floor(nowMs / 1000),
      }),
    }),
  }
}

export function shopRequest(secrets: LocalSecrets, id: string, payload: object): Outgoing {
  const webhook = new Webhook(secrets.environment['WEIR_SECRET_SHOP'] ?? '')
  const body = Buffer.from(JSON.stringify(payload))
  return {
    path: '/v1/webhooks/shop',
    body,
    headers: nowMs => ({
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(nowMs / 1000)),
      'webhook-signature': webhook.sign(id, new Date(nowMs), body.toString('utf8')),
    }),
  }
}

export function deployRequest(secrets: LocalSecrets, id: string, payload: object): Outgoing {
  const body = Buffer.from(JSON.stringify(payload))
  const secret = secrets.environment['WEIR_SECRET_DEPLOYS'] ?? ''
  const signature = createHmac('sha256', secret).update(body).digest('hex')
  return {
    path: '/v1/webhooks/deploys',
    body,
    headers: () => ({
      'content-type': 'application/json',
      'x-event-key': id,
      'x-event-type': 'deploy.finished',
      'x-signature': `sha256=${signature}`,
    }),
  }
}

/** A request of the API client `acme-api`. */
export function apiRequest(secrets: LocalSecrets, body: Buffer, headers: Readonly<Record<string, string>>): Outgoing {
  const authorization = `Bearer ${secrets.apiKeys['acme-api']}`
  return { path: '/v1/events', body, headers: () => ({ authorization, ...headers }) }
}
