import { randomBytes } from 'node:crypto'

/** A W3C `traceparent`, read. */
export interface Traceparent {
  /** 32 lower-case hex digits. */
  readonly traceId: string
  /** 16 lower-case hex digits: the span of whoever sent it. */
  readonly parentId: string
  /** Flags byte; bit 0: sampled, bit 1: the trace id is random. */
  readonly flags: number
}

const form = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
/** Bits of the flags byte that the standard defines; others must not be passed on. */
const knownFlags = 0x03

/** `null` when the text is not a valid traceparent (W3C Trace Context level 2): then a new trace begins. */
export function parseTraceparent(text: string | null | undefined): Traceparent | null {
  const match = form.exec(text ?? '')
  if (!match) return null
  const [, version = '', traceId = '', parentId = '', flags = '', rest] = match
  // Later versions may add fields behind a dash; version 00 has none, and ff is forbidden.
  if (version === 'ff' || (version === '00' && rest !== undefined)) return null
  if (/^0+$/.test(traceId) || /^0+$/.test(parentId)) return null
  return { traceId, parentId, flags: Number.parseInt(flags, 16) & knownFlags }
}

/** The traceparent to send on: the same trace with a new span, or a new sampled trace when there is no (valid) parent. */
export function childTraceparent(parent: string | Traceparent | null | undefined): string {
  const known = typeof parent === 'string' ? parseTraceparent(parent) : (parent ?? null)
  const traceId = known?.traceId ?? nonZeroHex(16)
  const flags = known?.flags ?? knownFlags
  return `00-${traceId}-${nonZeroHex(8)}-${flags.toString(16).padStart(2, '0')}`
}

function nonZeroHex(bytes: number): string {
  for (;;) {
    const hex = randomBytes(bytes).toString('hex')
    if (!/^0+$/.test(hex)) return hex
  }
}
