import { keyText, type BudgetConfiguration, type CeilingBudget, type RateBudget } from '@weir/core'
import { civilTime, firstOfMonthMs } from './calendar.ts'
import { emissionIntervalUs } from './gcra.ts'

/** One rate a delivery is asked for. */
export interface RateScope {
  readonly rule: string
  readonly limit: number
  readonly periodSeconds: number
  /** What is limited: rule and scope value; equal text is one limit. */
  readonly scope: string
  readonly tenant: string
  readonly intervalUs: number
  readonly burst: number
}

/** One ceiling a delivery is charged to. */
export interface CeilingAsk {
  readonly rule: string
  readonly budget: string
  readonly limit: number
  readonly windowStartMs: number
  /** End of the window; null when it never ends. */
  readonly windowEndMs: number | null
  readonly onExhaust: 'deny' | 'defer'
}

interface Charged {
  readonly tenant: string
  readonly run: string | null
}

export function rateScopes(budgets: readonly BudgetConfiguration[], event: Charged): RateScope[] {
  const rates = budgets.filter((budget): budget is RateBudget => budget.kind === 'rate')
  return rates.flatMap(budget => {
    const scope = scopeOf(budget, event)
    if (scope === null) return []
    const { name: rule, limit, periodSeconds, burst } = budget
    const intervalUs = emissionIntervalUs(limit, periodSeconds)
    return [{ rule, limit, periodSeconds, scope, tenant: event.tenant, intervalUs, burst }]
  })
}

export function ceilingAsks(budgets: readonly BudgetConfiguration[], event: Charged, atMs: number): CeilingAsk[] {
  const ceilings = budgets.filter((budget): budget is CeilingBudget => budget.kind === 'ceiling')
  return ceilings.flatMap(budget => {
    const scope = scopeOf(budget, event)
    if (scope === null) return []
    const { startMs, endMs } = windowAt(budget.window, atMs)
    const { name: rule, limit, onExhaust } = budget
    return [{ rule, budget: scope, limit, windowStartMs: startMs, windowEndMs: endMs, onExhaust }]
  })
}

/** Null when the budget does not limit this event. */
function scopeOf(budget: BudgetConfiguration, { tenant, run }: Charged): string | null {
  if (budget.tenants.length > 0 && !budget.tenants.includes(tenant)) return null
  switch (budget.scope) {
    case 'tenant':
      return keyText([budget.name, 'tenant', tenant])
    case 'run':
      return run === null ? null : keyText([budget.name, 'run', tenant, run])
  }
}

/** The calendar window in UTC that a time lies in. */
export function windowAt(
  window: CeilingBudget['window'],
  atMs: number,
): { readonly startMs: number; readonly endMs: number | null } {
  switch (window) {
    case 'none':
      return { startMs: 0, endMs: null }
    case 'minute':
      return fixedWindow(atMs, 60_000)
    case 'hour':
      return fixedWindow(atMs, 3_600_000)
    case 'day':
      return fixedWindow(atMs, 86_400_000)
    case 'month':
      return monthWindow(atMs)
  }
}

function fixedWindow(atMs: number, lengthMs: number): { readonly startMs: number; readonly endMs: number } {
  const startMs = Math.floor(atMs / lengthMs) * lengthMs
  return { startMs, endMs: startMs + lengthMs }
}

function monthWindow(atMs: number): { readonly startMs: number; readonly endMs: number } {
  const { year, month } = civilTime(atMs)
  return { startMs: firstOfMonthMs(year, month), endMs: firstOfMonthMs(year, month + 1) }
}
