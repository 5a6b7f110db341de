// How long an event is told from its repeats. All times are the broker's log-append times and the provider's signed time, in
// milliseconds since 1970; no clock of ours takes part.
import { matches } from '@weir/core'

/** What the configuration says of one source. */
export interface SourceWindows {
  readonly windowMs: number
  /** The first rule that names the type counts; `*` at the end of a type matches any rest. */
  readonly byType: readonly { readonly types: readonly string[]; readonly windowMs: number }[]
}

/** For a source the configuration no longer knows: its records may still be in the log. */
export const defaultWindowMs = 30 * 86_400_000

/** The brokers' clocks may differ by this much, and a provider's may be ahead by it: claims are kept that much longer. */
const longestMarginMs = 600_000

export function windowOf(windows: SourceWindows | undefined, type: string): number {
  if (windows === undefined) return defaultWindowMs
  return windows.byType.find(rule => rule.types.some(pattern => matches(pattern, type)))?.windowMs ?? windows.windowMs
}

/** Age of an event when it was appended, by the provider's signed time. Null without one, or with one in the future. */
export function ageMs(
  event: { readonly eventTimeMs: number | null; readonly eventTimeSigned: boolean },
  appendedAtMs: number,
): number | null {
  if (event.eventTimeMs === null || !event.eventTimeSigned || event.eventTimeMs > appendedAtMs) return null
  return appendedAtMs - event.eventTimeMs
}

/** An event is outside when it is older than its window; exactly as old is inside. One without an age is always inside. */
export function isOutsideWindow(ageInMs: number | null, windowMs: number): boolean {
  return ageInMs !== null && ageInMs > windowMs
}

/** Ten minutes, or a hundredth of a window shorter than seventeen hours. */
export function marginMs(windowMs: number): number {
  return Math.min(longestMarginMs, Math.floor(windowMs / 100))
}

/** Until what append time a claim is kept: it may go when every partition has committed a later one. */
export function keptUntilMs(appendedAtMs: number, windowMs: number): number {
  return appendedAtMs + windowMs + marginMs(windowMs)
}
