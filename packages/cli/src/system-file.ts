import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { WeirError } from '@weir/core'
import type { StackUrls } from '@weir/ops'
import type { Instance } from '@weir/system'
import { stateDirOf } from './paths.ts'

/** What `weir up` wrote down about the system it left running. */
export interface SystemFile extends StackUrls {
  readonly ingest: string
  readonly audit: string
  readonly topicPrefix: string
  readonly instances: readonly Instance[]
}

export function readSystem(stateDir: string): SystemFile | null {
  try {
    return JSON.parse(readFileSync(join(stateDir, 'system.json'), 'utf8')) as SystemFile
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/** The system of `weir up`. Throws with what to do when there is none. */
export function runningSystem(): SystemFile {
  const system = readSystem(stateDirOf('up'))
  if (system === null) throw new WeirError('prerequisite_missing', 'Weir is not up; start it with: weir up')
  return system
}
