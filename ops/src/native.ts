import type { Progress } from './progress.ts'
import type { Supervisor } from './supervisor.ts'

/** What a native server is started with. */
export interface NativeContext {
  /** Folder of this stack: data, logs, pid files. */
  readonly stateDir: string
  /** Folder shared by the stacks of this checkout: unpacked programs. */
  readonly toolsDir: string
  readonly supervisor: Supervisor
  readonly progress: Progress
  readonly signal: AbortSignal
}
