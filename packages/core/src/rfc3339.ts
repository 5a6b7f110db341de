const pattern = /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))$/

/** A time as seconds since 1970 and the digits of its fraction, which may be more than milliseconds hold. */
export interface Instant {
  readonly seconds: number
  readonly fraction: string
}

/** An RFC 3339 time; `null` when it is not one. A leap second counts as the second after. */
export function rfc3339Instant(text: string): Instant | null {
  const match = pattern.exec(text)
  if (match === null) return null
  const part = (index: number): number => Number(match[index] ?? '0')
  const [year, month, day, hour, minute, second] = [part(1), part(2), part(3), part(4), part(5), part(6)]
  const [offsetHours, offsetMinutes] = [part(9), part(10)]
  if (month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month)) return null
  if (hour > 23 || minute > 59 || second > 60 || offsetHours > 23 || offsetMinutes > 59) return null
  const offset = (match[8] === '-' ? -1 : 1) * (offsetHours * 60 + offsetMinutes)
  const seconds = daysSinceEpoch(year, month, day) * 86_400 + hour * 3600 + (minute - offset) * 60 + second
  return { seconds, fraction: match[7] ?? '' }
}

/** Milliseconds since 1970 of an RFC 3339 time, rounded down; `null` when it is not one. */
export function rfc3339Ms(text: string): number | null {
  const instant = rfc3339Instant(text)
  return instant === null ? null : instant.seconds * 1000 + Math.floor(Number(`0.${instant.fraction || '0'}`) * 1000)
}

function daysInMonth(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
}

/** Days from 1970-01-01 in the proleptic Gregorian calendar; years run from March, so that the leap day is the last. */
function daysSinceEpoch(year: number, month: number, day: number): number {
  const y = month <= 2 ? year - 1 : year
  const era = Math.floor(y / 400)
  const yearOfEra = y - era * 400
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear
  return era * 146_097 + dayOfEra - 719_468
}
