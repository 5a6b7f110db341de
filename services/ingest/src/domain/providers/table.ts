import type { ProviderName } from '@weir/core'
import { github } from './github.ts'
import { hmac } from './hmac.ts'
import type { Provider } from './scheme.ts'
import { standardWebhooks } from './standard-webhooks.ts'
import { stripe } from './stripe.ts'

/** Every provider by its name in the configuration. */
export const providers: Readonly<Record<ProviderName, Provider>> = {
  github,
  stripe,
  'standard-webhooks': standardWebhooks,
  hmac,
}
