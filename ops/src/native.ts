import type { PortBook } from './port-book.ts'
import type { Progress } from './progress.ts'
import type { Supervisor } from './supervisor.ts'

/** `fresh`: each start begins with nothing. `kept`: a start goes on with what the last one left. */
export type DataPolicy = 'fresh' | 'kept'

/** What a native server is started with. */
export interface NativeContext {
  /** Folder of this stack: data, logs, pid files. */
  readonly stateDir: string
  /** Folder shared by the stacks of this checkout: unpacked programs. */
  readonly toolsDir: string
  readonly data: DataPolicy
  readonly ports: PortBook
  readonly supervisor: Supervisor
  readonly progress: Progress
  readonly signal: AbortSignal
}
