import { z } from 'zod'

// The shape of weir.yaml as people write it. What the services get is built from it in build-configuration.ts.

const name = z
  .string()
  .regex(/^[a-z0-9-]{1,64}$/, 'a name has 1 to 64 lower-case letters, digits and dashes')
  .meta({ title: 'name' })

const pointer = z
  .string()
  .max(512)
  .regex(/^(\/([^~/]|~[01])*)+$/, 'a path starts with a slash, for example /data/object/id (JSON Pointer, RFC 6901)')
  .meta({ title: 'path' })

const header = z
  .string()
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/, 'not a header name')
  .meta({ title: 'header name' })

const secondsPerUnit = { s: 1, m: 60, h: 3_600, d: 86_400 } as const

/** `90s`, `15m`, `12h`, `30d` as seconds. */
const duration = z
  .string()
  .regex(/^\d{1,9}[smhd]$/, 'a time is a whole number with s, m, h or d, for example 30d')
  .transform(text => Number(text.slice(0, -1)) * secondsPerUnit[text.slice(-1) as keyof typeof secondsPerUnit])
  .refine(seconds => seconds > 0, 'must be more than zero')
  .meta({ title: 'time' })

const bytesPerUnit = { B: 1, KiB: 1_024, MiB: 1_048_576 } as const
/** Topic raw takes records of 2 MiB; the rest is room for headers and the fields around the body. */
const largestBody = 1.5 * bytesPerUnit.MiB

/** `512KiB`, `1MiB` as bytes. */
const size = z
  .string()
  .regex(/^\d{1,9}(B|KiB|MiB)$/, 'a size is a whole number with B, KiB or MiB, for example 1MiB')
  .transform(text => {
    const [, digits = '', unit = 'B'] = /^(\d+)(\w+)$/.exec(text) ?? []
    return Number(digits) * bytesPerUnit[unit as keyof typeof bytesPerUnit]
  })
  .refine(bytes => bytes > 0 && bytes <= largestBody, 'must be from 1B to 1536KiB')
  .meta({ title: 'size' })

const place = {
  env: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'not the name of an environment variable')
    .optional()
    .describe('Name of the environment variable that holds it.'),
  file: z
    .string()
    .min(1)
    .optional()
    .describe('Path of the file that holds it, instead of `env`; a line feed at its end is no part of it.'),
}
const isOnePlace = (value: { env?: string | undefined; file?: string | undefined }): boolean =>
  (value.env === undefined) !== (value.file === undefined)
const onePlace = 'give either env: NAME or file: PATH'

const reference = z.strictObject(place).refine(isOnePlace, onePlace)

const secretReference = z
  .strictObject({
    ...place,
    id: name.optional().describe('Shown in logs and receipts. Default: the name of the variable or file.'),
    notAfter: z.iso
      .datetime({ offset: true, error: 'not a time like 2027-01-31T00:00:00Z' })
      .optional()
      .meta({ title: 'date and time' })
      .describe('After this time the secret no longer verifies: for an old secret while a new one is phased in.'),
  })
  .refine(isOnePlace, onePlace)

const paths = {
  subject: pointer
    .optional()
    .describe('Path to what the event is about (account, repository), so that `weir why` can start from it.'),
  object: pointer
    .optional()
    .describe('Path to the object whose events keep their order: its value is the ordering key.'),
  version: pointer
    .optional()
    .describe(
      'Path to the version of the object (number or event time): an older one than the last let through is not delivered. Needs `object`.',
    ),
  run: pointer.optional().describe('Path to the id of the run an event belongs to, for budgets per run.'),
  eventTime: pointer.optional().describe('Path to the time the provider says the event happened.'),
}

const businessKey = z
  .strictObject({
    space: name.describe('Name of the key space; sources of one tenant that share it share the keys.'),
    paths: z
      .array(pointer)
      .min(1)
      .max(8)
      .describe('Values at these paths, in this order, make the key; an event that lacks one has none.'),
  })
  .describe(
    'A second key for one business action that several sources may report: only the first event with it is let through.',
  )

const types = z
  .array(
    z
      .string()
      .max(256)
      .regex(/^[^*\s]*\*?$/, 'a * may only stand at the end')
      .min(1),
  )
  .min(1)

const longestWindowDays = 3_650
const windowTime = duration.refine(
  seconds => seconds <= longestWindowDays * secondsPerUnit.d,
  `at most ${longestWindowDays}d`,
)
const window = windowTime.default(30 * secondsPerUnit.d)
const typeWindows = z
  .array(
    z.strictObject({
      types: types.describe('Event types; a * at the end stands for any rest.'),
      window: windowTime.describe('Their window; the least time is that of `window`.'),
    }),
  )
  .max(64)
  .default([])
  .describe('Other windows for some event types; the first rule that names a type counts, else `window`.')
const maxBody = size.default(bytesPerUnit.MiB)
const keyHash = z
  .union([z.string().regex(/^[0-9a-f]{64}$/, 'not a SHA-256 in hex'), reference])
  .describe('SHA-256 of the API key, 64 hex digits, or where to find it: { env: NAME } or { file: PATH }.')

const sourceSchema = z.strictObject({
  tenant: name.describe('The tenant whose events these are.'),
  provider: z
    .enum(['github', 'stripe', 'standard-webhooks', 'hmac'])
    .describe('How requests are signed and where ids stand.'),
  secrets: z.array(secretReference).min(1).max(8).describe('Signing secrets by reference; any of them verifies.'),
  hmac: z
    .strictObject({
      header: header.describe('Header with the signature.'),
      prefix: z.string().max(32).default('').describe('Text before the signature, for example `sha256=`.'),
      algorithm: z.enum(['sha256', 'sha512']).default('sha256').describe('Hash of the HMAC.'),
      encoding: z.enum(['hex', 'base64']).default('hex').describe('How the signature is written.'),
      template: z
        .string()
        .max(256)
        .refine(text => text.includes('{body}'), 'must contain {body}, or the body is not signed')
        .default('{body}')
        .describe('The signed text, with {body}, {timestamp} and {id} as places.'),
      timestampHeader: header.optional().describe('Header with the time of sending, seconds since 1970.'),
      tolerance: duration.default(300).describe('How old or how far ahead that time may be.'),
    })
    .optional()
    .describe('The signature scheme; required for, and only for, provider hmac.'),
  key: z
    .strictObject({
      header: header.optional().describe('Header with the id.'),
      body: pointer.optional().describe('Path to the id, for requests without the header.'),
      fingerprint: z
        .array(pointer)
        .max(32)
        .optional()
        .describe('Paths whose values together make the id, for requests with neither. Name no delivery times.'),
    })
    .refine(
      rule => rule.header !== undefined || rule.body !== undefined || rule.fingerprint !== undefined,
      'name a header, a body path or fingerprint paths',
    )
    .optional()
    .describe(
      'Where the event id comes from: a header, else a path in the body, else a fingerprint of some paths. Default: the provider’s own rule; required for hmac.',
    ),
  type: z
    .strictObject({
      header: header.optional().describe('Header with the type.'),
      body: pointer.optional().describe('Path to the type, for requests without the header.'),
    })
    .refine(rule => rule.header !== undefined || rule.body !== undefined, 'name a header or a body path')
    .optional()
    .describe('Where the event type comes from. Default: the provider’s own rule.'),
  ...paths,
  businessKey: businessKey.optional(),
  window: window.describe(
    'How long a repeat is recognised; an event whose signed time is older is parked. At least the time the provider may retry plus 7 days.',
  ),
  typeWindows,
  onPayloadChange: z
    .enum(['flag', 'park'])
    .default('flag')
    .describe('What happens to a known event key with another payload.'),
  maxBody: maxBody.describe('Largest body accepted.'),
})

const clientSchema = z.strictObject({
  tenant: name.describe('The tenant whose events these are.'),
  keySha256: keyHash,
  onDuplicate: z
    .enum(['conflict', 'replay'])
    .default('conflict')
    .describe('Answer to a repeat: 409 naming the original, or the original’s answer again.'),
  ...paths,
  businessKey: businessKey.optional(),
  window: window.describe('How long a repeat is recognised; at least 7 days.'),
  typeWindows,
  maxBody: maxBody.describe('Largest body accepted.'),
})

const agentSchema = z.strictObject({
  tenant: name.describe('The tenant whose events it may get.'),
  outcomes: z
    .enum(['off', 'required'])
    .default('off')
    .describe('Whether the agent reports how its work ended; `required` parks what is not reported in time.'),
  keySha256: keyHash.optional(),
})

const routeSchema = z.strictObject({
  tenant: name.describe('The tenant whose events it routes.'),
  sources: z.array(name).min(1).describe('Sources or API clients of the tenant.'),
  types: types.default(['*']).describe('Event types; a * at the end stands for any rest.'),
  agents: z.array(name).min(1).describe('Agents of the tenant that get the event, each of them.'),
  attempts: z
    .int()
    .min(1)
    .max(100)
    .default(5)
    .describe(
      'How often an event is delivered at most to an agent with `outcomes: required` that reports failures without effects; then it is parked.',
    ),
  backoff: duration.default(10).describe('Wait before the second attempt; doubles each time, up to an hour.'),
  deadline: duration
    .default(900)
    .describe('Time an agent with `outcomes: required` has to report; then the delivery is parked.'),
})

const budgetCommon = {
  scope: z.enum(['tenant', 'run']).describe('Counted per tenant or per run.'),
  tenants: z.array(name).default([]).describe('Tenants it holds for; empty: all.'),
  limit: z.int().min(1).max(1_000_000_000).describe('Events per period (rate) or per window (ceiling).'),
}

const rateSchema = z.strictObject({
  kind: z.literal('rate').describe('A limit per time: what is too much is deferred and delivered later, in order.'),
  ...budgetCommon,
  period: duration.describe('The time over which `limit` events may pass; more are deferred.'),
  burst: z.int().min(1).optional().describe('Events that may pass at once; at most `limit`. Default: `limit`.'),
})

const ceilingSchema = z.strictObject({
  kind: z
    .literal('ceiling')
    .describe('A limit of a count: what is above it is refused, or deferred to the next window.'),
  ...budgetCommon,
  window: z
    .enum(['none', 'minute', 'hour', 'day', 'month'])
    .describe('Calendar window in UTC after which counting starts again; none: never.'),
  onExhaust: z
    .enum(['deny', 'defer'])
    .default('deny')
    .describe('What happens to events above the limit; defer needs a window.'),
})

const analystSchema = z.strictObject({
  tenants: z
    .union([z.tuple([z.literal('*')]), z.array(name).min(1)])
    .describe('Tenants whose records the analyst may read; ["*"]: all.'),
  keySha256: keyHash,
})

export const documentSchema = z.strictObject({
  tenants: z.array(name).min(1).describe('All tenants. Everything else names one of them.'),
  sources: z.record(name, sourceSchema).default({}).describe('Webhook sources by name: `POST /v1/webhooks/{name}`.'),
  clients: z
    .record(name, clientSchema)
    .default({})
    .describe('API clients by name: `POST /v1/events`. The name is the source of their events.'),
  agents: z
    .record(name, agentSchema)
    .default({})
    .describe('Agents by name; each reads its topic `{prefix}agent.{name}`.'),
  routes: z
    .record(name, routeSchema)
    .default({})
    .describe('Which agents get which events. An event goes to the agents of every route it matches.'),
  budgets: z
    .record(name, z.discriminatedUnion('kind', [rateSchema, ceilingSchema]))
    .default({})
    .describe('Limits on what reaches agents.'),
  analysts: z.record(name, analystSchema).default({}).describe('Who may ask the audit store.'),
})

export type ConfigurationDocument = z.output<typeof documentSchema>
export type SecretReferenceDocument = z.output<typeof secretReference>
export type ReferenceDocument = z.output<typeof reference>
