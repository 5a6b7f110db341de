import type { StageHandler } from '@weir/core'
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

/** The handler with some of its methods replaced. */
export function withHandler(handler: StageHandler, changes: Partial<StageHandler>): StageHandler {
  return {
    claim: (batch, context) => handler.claim(batch, context),
    reroute: (batch, context, topic, code) => handler.reroute(batch, context, topic, code),
    rebuild: (outputs, ownership) => handler.rebuild(outputs, ownership),
    begin: ownership => handler.begin(ownership),
    committed: async (batch, context) => await handler.committed?.(batch, context),
    tick: async (ownership, committed) => await handler.tick?.(ownership, committed),
    end: partition => handler.end(partition),
    ...changes,
  }
}

export const dedupOnly: readonly StageName[] = ['dedup']
export const both: readonly StageName[] = ['dedup', 'policy']
