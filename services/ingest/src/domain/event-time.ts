import { rfc3339Ms } from '@weir/core'

/** A provider's event time: RFC 3339 text, or a number of seconds (milliseconds from 10^11 on, which as seconds is the year 5138). */
export function eventTimeMs(text: string): number | null {
  if (/^\d{1,10}(\.\d{1,9})?$/.test(text) || /^\d{11}(\.\d{1,9})?$/.test(text)) return Math.floor(Number(text) * 1000)
  if (/^\d{12,15}$/.test(text)) return Number(text)
  return rfc3339Ms(text)
}
