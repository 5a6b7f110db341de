import { rfc3339Instant } from '@weir/core'

/** A version as the ledger compares it. Versions of different kinds are not compared. */
export interface ComparedVersion {
  readonly kind: 'number' | 'time'
  /** A decimal number; of a time: seconds since 1970. */
  readonly text: string
}

/** Digits are bounded, or one event could make the database compare megabytes. */
const number = /^[+-]?\d{1,64}(\.\d{1,64})?([eE][+-]?\d{1,2})?$/

/** Null when the text is neither a number nor an RFC 3339 time. */
export function comparedVersion(text: string): ComparedVersion | null {
  if (number.test(text)) return { kind: 'number', text }
  const instant = rfc3339Instant(text)
  if (instant === null) return null
  const { seconds, fraction } = instant
  if (fraction === '' || seconds >= 0)
    return { kind: 'time', text: `${seconds}${fraction === '' ? '' : `.${fraction}`}` }
  // Before 1970 the fraction counts upwards from a negative second.
  const scale = 10n ** BigInt(fraction.length)
  const units = -(BigInt(seconds) * scale + BigInt(fraction))
  const digits = String(units).padStart(fraction.length + 1, '0')
  const sign = units === 0n ? '' : '-'
  return { kind: 'time', text: `${sign}${digits.slice(0, -fraction.length)}.${digits.slice(-fraction.length)}` }
}
