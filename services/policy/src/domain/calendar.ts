// The proleptic Gregorian calendar in UTC, without the process's clock or time zone.

const dayMs = 86_400_000

/** First instant of a month, milliseconds since 1970. Month 13 is January of the next year. */
export function firstOfMonthMs(year: number, month: number): number {
  const normal = month > 12 ? { year: year + 1, month: month - 12 } : { year, month }
  const shifted = normal.month <= 2 ? normal.year - 1 : normal.year
  const era = Math.floor(shifted / 400)
  const yearOfEra = shifted - era * 400
  const dayOfYear = Math.floor((153 * (normal.month > 2 ? normal.month - 3 : normal.month + 9) + 2) / 5)
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear
  return (era * 146_097 + dayOfEra - 719_468) * dayMs
}

interface CivilTime {
  readonly year: number
  readonly month: number
  readonly day: number
  readonly hour: number
  readonly minute: number
  readonly second: number
  readonly millisecond: number
}

/** Date and time in UTC of milliseconds since 1970. */
export function civilTime(ms: number): CivilTime {
  const days = Math.floor(ms / dayMs) + 719_468
  const era = Math.floor(days / 146_097)
  const dayOfEra = days - era * 146_097
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1_460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  )
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100))
  const shifted = Math.floor((5 * dayOfYear + 2) / 153)
  const month = shifted < 10 ? shifted + 3 : shifted - 9
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
  const rest = ms - Math.floor(ms / dayMs) * dayMs
  return {
    year,
    month,
    day: dayOfYear - Math.floor((153 * shifted + 2) / 5) + 1,
    hour: Math.floor(rest / 3_600_000),
    minute: Math.floor(rest / 60_000) % 60,
    second: Math.floor(rest / 1_000) % 60,
    millisecond: rest % 1_000,
  }
}
