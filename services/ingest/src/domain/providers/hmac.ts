import { createHmac } from 'node:crypto'
import { WeirError, type HmacScheme, type SourceConfiguration } from '@weir/core'
import { headerBytes, singleHeader, type HeaderMap } from '../header-map.ts'
import { maxCandidates, refused, type Provider, type SignatureReading } from './scheme.ts'

/** Generic HMAC: header, prefix, algorithm, encoding and the signed text are the source's own. Several signatures stand comma-separated. */
export const hmac: Provider = {
  scheme: source => {
    const scheme = safeScheme(source)
    return {
      algorithm: scheme.algorithm,
      encoding: scheme.encoding,
      toleranceSeconds: scheme.toleranceSeconds,
      read: headers => readScheme(scheme, source.key?.header ?? null, headers),
    }
  },
  secretBytes: value => (value === '' ? null : Buffer.from(value, 'utf8')),
  identity: {
    key: null,
    keyHeaderAliases: [],
    type: { header: 'x-event-type', body: null },
    typeSuffix: null,
    eventTime: null,
    keyHeaderSigned: source => source.hmac?.template.includes('{id}') === true,
    formField: null,
    alwaysJson: false,
    headers: ['x-event-key', 'x-event-type'],
  },
  sign: ({ secret, body, nowMs, id, type, hmac: options }) => {
    if (options === undefined)
      throw new WeirError('config_invalid', 'Signing for a generic HMAC source needs its scheme')
    const { scheme, keyHeader, typeHeader } = options
    const timestamp = String(Math.floor(nowMs / 1000))
    const [before = '', after = ''] = aroundBody(scheme.template, { timestamp, id })
    const mac = createHmac(scheme.algorithm, secret).update(before).update(body).update(after).digest(scheme.encoding)
    return {
      'content-type': 'application/json',
      [scheme.header.toLowerCase()]: scheme.prefix + mac,
      ...(scheme.timestampHeader === null ? {} : { [scheme.timestampHeader.toLowerCase()]: timestamp }),
      [(keyHeader ?? 'x-event-key').toLowerCase()]: id,
      ...(type === undefined ? {} : { [(typeHeader ?? 'x-event-type').toLowerCase()]: type }),
    }
  },
}

/** Refuses a scheme under which something could pass unsigned. */
function safeScheme(source: SourceConfiguration): HmacScheme {
  const scheme = source.hmac
  const refuse = (why: string): never => {
    throw new WeirError('config_invalid', `Source \`${source.name}\`: ${why}`, { context: { source: source.name } })
  }
  if (scheme === null) return refuse('provider `hmac` needs a `hmac` section')
  if (scheme.template.split('{body}').length !== 2) return refuse('the signed text must contain `{body}` exactly once')
  if (/[^ -~]/.test(scheme.template)) return refuse('the signed text must be printable ASCII')
  if (scheme.template.includes('{timestamp}') !== (scheme.timestampHeader !== null)) {
    return refuse(
      '`timestampHeader` and `{timestamp}` in the signed text need each other: an unsigned time proves nothing',
    )
  }
  if (scheme.template.includes('{id}') && (source.key?.header ?? null) === null) {
    return refuse('`{id}` in the signed text needs `key.header`')
  }
  if (!(scheme.toleranceSeconds > 0)) return refuse('`toleranceSeconds` must be above 0')
  return scheme
}

function readScheme(scheme: HmacScheme, keyHeader: string | null, headers: HeaderMap): SignatureReading {
  const signature = singleHeader(headers, scheme.header)
  if (signature.kind === 'absent') return refused('missing_signature')
  if (signature.kind === 'many') return refused('repeated_header')
  const items = signature.value.split(',', maxCandidates + 1).map(item => item.trim())
  if (items.length > maxCandidates || !items.every(item => item.startsWith(scheme.prefix))) {
    return refused('malformed_signature')
  }
  const candidates = items.map(item => item.slice(scheme.prefix.length))

  let timestamp: string | null = null
  if (scheme.timestampHeader !== null) {
    const header = singleHeader(headers, scheme.timestampHeader)
    if (header.kind === 'absent') return refused('missing_timestamp')
    if (header.kind === 'many') return refused('repeated_header')
    timestamp = header.value
  }
  let id = ''
  if (keyHeader !== null && scheme.template.includes('{id}')) {
    const header = singleHeader(headers, keyHeader)
    if (header.kind === 'absent') return refused('missing_id')
    if (header.kind === 'many') return refused('repeated_header')
    id = header.value
  }
  const [before = '', after = ''] = aroundBody(scheme.template, { timestamp: timestamp ?? '', id })
  return { kind: 'read', candidates, timestamp, before: headerBytes(before), after: headerBytes(after) }
}

/** The template's two halves with their places filled. Values are put in once: a value that looks like a place stays as it is. */
function aroundBody(template: string, values: { readonly timestamp: string; readonly id: string }): string[] {
  return template
    .split('{body}')
    .map(half => half.replace(/\{(timestamp|id)\}/g, (_, name: 'timestamp' | 'id') => values[name]))
}
