// The generic cell rate algorithm in integer microseconds. One number per limit: the theoretical arrival time (TAT).
// At most `burst + ceil(L / T) - 1` pass in any time L, with T the emission interval.

/** T: rounded up, so that rounding never lets more through. */
export function emissionIntervalUs(limit: number, periodSeconds: number): number {
  return Math.ceil((periodSeconds * 1_000_000) / limit)
}

export interface Cell {
  readonly intervalUs: number
  readonly burst: number
  /** Theoretical arrival time; 0 when nothing was asked yet. */
  readonly tatUs: number
}

/** When the next event may pass: now or earlier means at once. */
export function slotUs(cell: Cell, nowUs: number): number {
  return Math.max(cell.tatUs, nowUs) - (cell.burst - 1) * cell.intervalUs
}

/** TAT after one more event, passed or with a slot reserved. */
export function advancedTatUs(cell: Cell, nowUs: number): number {
  return Math.max(cell.tatUs, nowUs) + cell.intervalUs
}

/** Events that count against the limit now, reserved ones too. */
export function usedNow(cell: Cell, nowUs: number): number {
  return Math.max(0, Math.ceil((cell.tatUs - nowUs) / cell.intervalUs))
}

/** The share of a limit that one of several instances may use by itself. */
export function localShare(
  rate: { readonly intervalUs: number; readonly burst: number },
  share: number,
): { readonly intervalUs: number; readonly burst: number } {
  return { intervalUs: Math.ceil(rate.intervalUs / share), burst: Math.max(1, Math.floor(rate.burst * share)) }
}
