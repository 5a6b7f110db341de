import type { Alterations } from '../context.ts'
import type { StageName } from '../scenario.ts'

/** One rule taken away from the system, which the simulation has to notice. */
export interface Sabotage {
  readonly name: string
  /** What is taken away, in one sentence. */
  readonly what: string
  /** Stages the world needs to show it. */
  readonly stages: readonly StageName[]
  /** Alterations of one run: what they remember is of that run. */
  make(): Alterations
}

export const dedupOnly: readonly StageName[] = ['dedup']
export const both: readonly StageName[] = ['dedup', 'policy']
