import { WeirError, type SourceConfiguration } from '@weir/core'
import { prepareBusinessKey, preparePaths, type PreparedBusinessKey, type PreparedPaths } from './event-draft.ts'
import { pointerTokens } from './json-pointer.ts'
import { providers } from './providers/table.ts'
import { prepareVerifier, type Verifier } from './providers/verify.ts'

/** Where a source's event id comes from. */
export type PreparedKey =
  | { readonly kind: 'header'; readonly names: readonly string[]; readonly origin: 'header' | 'provider' }
  | { readonly kind: 'body'; readonly tokens: readonly string[]; readonly origin: 'body_path' | 'provider' }
  | { readonly kind: 'fingerprint'; readonly paths: ReadonlyMap<string, readonly string[]> }

/** A source of weir.yaml with everything that can be made ready before a request comes. */
export interface WebhookSource {
  readonly name: string
  readonly tenant: string
  readonly verifier: Verifier
  readonly maxBodyBytes: number
  readonly key: PreparedKey
  readonly keySigned: boolean
  readonly typeHeader: string | null
  readonly typePath: readonly string[] | null
  readonly typeSuffix: readonly string[] | null
  readonly formField: string | null
  readonly alwaysJson: boolean
  readonly paths: PreparedPaths
  readonly businessKey: PreparedBusinessKey | null
  /** Names of the request headers kept with the event. */
  readonly keptHeaders: readonly string[]
}

const commonHeaders = ['user-agent', 'content-encoding', 'content-language', 'idempotency-key', 'x-request-id']

/** Throws `config_invalid` for what could not be verified or keyed. */
export function prepareSource(source: SourceConfiguration): WebhookSource {
  const { identity } = providers[source.provider]
  const key = prepareKey(source)
  const type = source.type ?? identity.type
  const suffix = source.type === null ? identity.typeSuffix : null
  const paths = preparePaths(source.paths)
  return {
    name: source.name,
    tenant: source.tenant,
    verifier: prepareVerifier(source),
    maxBodyBytes: source.maxBodyBytes,
    key,
    keySigned: key.kind === 'header' ? identity.keyHeaderSigned(source) : true,
    typeHeader: type.header?.toLowerCase() ?? null,
    typePath: type.body === null ? null : pointerTokens(type.body),
    typeSuffix: suffix === null ? null : pointerTokens(suffix),
    formField: identity.formField,
    alwaysJson: identity.alwaysJson,
    paths:
      paths.eventTime === null && identity.eventTime !== null
        ? { ...paths, eventTime: pointerTokens(identity.eventTime) }
        : paths,
    businessKey: prepareBusinessKey(source.businessKey),
    keptHeaders: keptHeaders(source, key),
  }
}

function prepareKey(source: SourceConfiguration): PreparedKey {
  const { identity } = providers[source.provider]
  const rule = source.key ?? identity.key
  const own = source.key !== null
  if (rule?.header != null) {
    const aliases = own ? [] : identity.keyHeaderAliases
    return { kind: 'header', names: [rule.header.toLowerCase(), ...aliases], origin: own ? 'header' : 'provider' }
  }
  if (rule?.body != null) {
    return { kind: 'body', tokens: pointerTokens(rule.body), origin: own ? 'body_path' : 'provider' }
  }
  if (rule !== null && rule.fingerprint.length > 0) {
    return { kind: 'fingerprint', paths: new Map(rule.fingerprint.map(path => [path, pointerTokens(path)])) }
  }
  throw new WeirError(
    'config_invalid',
    `Source \`${source.name}\` does not say where the event id is: set key.header, key.body or key.fingerprint`,
    { context: { source: source.name } },
  )
}

/** Signatures and credentials are never kept, even where a setting names their header. */
function keptHeaders(source: SourceConfiguration, key: PreparedKey): readonly string[] {
  const names = new Set([
    ...commonHeaders,
    ...providers[source.provider].identity.headers,
    ...(key.kind === 'header' ? key.names : []),
    ...(source.type?.header == null ? [] : [source.type.header.toLowerCase()]),
  ])
  for (const name of ['authorization', 'cookie', 'proxy-authorization', source.hmac?.header.toLowerCase() ?? '']) {
    names.delete(name)
  }
  return [...names].sort()
}
