// Samples that `weir send` knows, by source.
import { randomUUID } from 'node:crypto'
import { WeirError } from '@weir/core'
import type { LocalSecrets } from '@weir/system'
import {
  deployRequest,
  githubRequest,
  githubSamples,
  shopRequest,
  stripeEvent,
  stripeRequest,
  type Outgoing,
} from './requests.ts'

const stripeTypes = ['payment_intent.succeeded', 'invoice.paid', 'customer.subscription.deleted', 'charge.refunded']
const shopTypes = ['order.created', 'order.updated', 'order.cancelled']
const deployTypes = ['finished']

/** Sample names by source; of one source when it is named. */
export function samplesOf(source?: string): [string, readonly string[]][] {
  const all: [string, readonly string[]][] = [
    ['github', [...new Set(githubSamples().map(sample => sample.name))].sort()],
    ['stripe', stripeTypes],
    ['shop', shopTypes],
    ['deploys', deployTypes],
  ]
  const found = all.filter(([name]) => source === undefined || name === source)
  if (found.length === 0)
    throw unknown(
      'source',
      source ?? '',
      all.map(([name]) => name),
    )
  return found
}

/** A new delivery of a sample. Throws `invalid_value` naming what there is. */
export function sampleRequest(secrets: LocalSecrets, source: string, sample: string): Outgoing {
  const [known] = samplesOf(source)
  if (!(known?.[1].includes(sample) ?? false)) throw unknown(`sample of ${source}`, sample, known?.[1] ?? [])
  const id = randomUUID().slice(0, 13)
  switch (source) {
    case 'github': {
      const found = githubSamples().find(({ name }) => name === sample)
      if (found === undefined) throw unknown('sample of github', sample, [])
      return githubRequest(secrets, found)
    }
    case 'stripe':
      return stripeRequest(secrets, stripeEvent(`evt_${id}`, sample, 'cus_sample', null))
    case 'shop':
      return shopRequest(secrets, `msg_${id}`, {
        type: sample,
        data: { order_id: `order-${id}`, stage: sample, customer: 'cus_sample' },
      })
    default:
      return deployRequest(secrets, `deploy-${id}`, { service: 'sample', version: 1 })
  }
}

function unknown(what: string, value: string, known: readonly string[]): WeirError {
  return new WeirError('invalid_value', `there is no ${what} "${value}"; there are: ${known.join(', ')}`)
}
