// For tests: another copy of kafkajs in the same process, with other patches or with modules replaced.
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { KafkajsClient } from '../patches/kafkajs-client.ts'
import { loadKafkajs, type LoadOptions } from '../patches/load-kafkajs.ts'

export interface KafkajsCopy {
  readonly folder: string
  readonly load: (options?: Omit<LoadOptions, 'folder'>) => KafkajsClient
  readonly remove: () => void
}

/** A private copy of the installed package in a temporary folder; call `remove` at the end. */
export function copyKafkajs(): KafkajsCopy {
  const source = dirname(createRequire(import.meta.url).resolve('kafkajs/package.json'))
  const folder = join(mkdtempSync(join(tmpdir(), 'weir-kafkajs-')), 'kafkajs')
  cpSync(source, folder, { recursive: true })
  return {
    folder,
    load: (options = {}) => loadKafkajs({ ...options, folder }),
    remove: () => rmSync(dirname(folder), { recursive: true, force: true }),
  }
}
