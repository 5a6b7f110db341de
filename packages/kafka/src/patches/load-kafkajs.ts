// The only place that loads kafkajs. Its internals are replaced through the require cache before its entry is loaded, so that
// all of it uses the replacements. The version is pinned and the files replaced are compared by hash: a patch written for other
// source must not be applied.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { WeirError } from '@weir/core'
import { filterAbortedMessages } from './abort-filter.ts'
import { rememberCoordinators } from './coordinator-cache.ts'
import { addErrorCodes, type ProtocolErrorCode } from './error-codes.ts'
import { createDecodeMessages } from './fetched-messages.ts'
import { groupMessagesPerPartition } from './group-messages.ts'
import type { KafkajsClient } from './kafkajs-client.ts'
import { createRequest, quickProduceRequest } from './produce-encoder.ts'
import { withLastOffset, type RecordBatchDecoder } from './record-batch-decoder.ts'
import { decodeRecord } from './record-decoder.ts'
import { scheduleCheckPendingRequests } from './request-queue.ts'

const pinnedVersion = '2.2.4'

type Inside = (file: string) => unknown
/** Gets the module's exports and a require inside kafkajs; returns what the module exports from now on. */
type ModuleReplacement = (original: unknown, inside: Inside) => unknown

interface Patch {
  readonly file: string
  /** SHA-256 of the file as published in 2.2.4. */
  readonly sha256: string
  readonly replace: ModuleReplacement
}

// Order matters: a module is replaced before any other that requires it is loaded.
const patches = {
  'error-codes': {
    file: 'src/protocol/error.js',
    sha256: '8911e3226a8aebddc2fffe2b2504379f966b804995dd911713c8c495c3673188',
    replace: original => {
      addErrorCodes((original as { errorCodes: ProtocolErrorCode[] }).errorCodes)
      return original
    },
  },
  'record-decoder': {
    file: 'src/protocol/recordBatch/record/v0/decoder.js',
    sha256: '86d740054c8be29b02873bf2871eb43ba5004af94324610541dbab2d9fabcc65',
    replace: () => decodeRecord,
  },
  'empty-batch': {
    file: 'src/protocol/recordBatch/v0/decoder.js',
    sha256: '38cae7fc865f9bc51941353e1f6e9419227a8799ba4efb437199393a4eb94819',
    replace: original => withLastOffset(original as RecordBatchDecoder),
  },
  'huge-batch': {
    file: 'src/protocol/requests/fetch/v4/decodeMessages.js',
    sha256: 'd9fede59bebf84ee15169d0ecc54df594a11722b6ba8d5db535ed1d8548d4fcc',
    replace: (_original, inside) => {
      const Decoder = inside('src/protocol/decoder.js') as new (
        buffer: Buffer,
      ) => ReturnType<Parameters<typeof createDecodeMessages>[0]['createDecoder']>
      const decodeRecordBatch = inside('src/protocol/recordBatch/v0/decoder.js')
      return createDecodeMessages({
        createDecoder: buffer => new Decoder(buffer),
        decodeRecordBatch: decodeRecordBatch as Parameters<typeof createDecodeMessages>[0]['decodeRecordBatch'],
      })
    },
  },
  'abort-filter': {
    file: 'src/consumer/filterAbortedMessages.js',
    sha256: '54ce50f2a41ee1686da8b73bf8b502c7dd07c9d7cb0a494cdb36a7fc536ced8e',
    replace: () => filterAbortedMessages,
  },
  'negative-timeout': {
    file: 'src/network/requestQueue/index.js',
    sha256: 'b55986089c14f8f7bfc377922e2e65b3e4c1e7c7af2752d3b10a75dfe9e9260c',
    replace: original => {
      const queue = original as { prototype: object }
      Object.assign(queue.prototype, { scheduleCheckPendingRequests })
      return original
    },
  },
  'linear-grouping': {
    file: 'src/producer/groupMessagesPerPartition.js',
    sha256: 'ea72357721fbf67770b5e06b9bf4260faa1e60f3affb556bff2cc7892c1881fb',
    replace: () => groupMessagesPerPartition,
  },
  'quick-request': {
    file: 'src/protocol/request.js',
    sha256: '2270900ca6474026c11957fe71ac586881985460ed2554db22ad8870dcaff634',
    replace: () => createRequest,
  },
  'quick-produce': {
    file: 'src/protocol/requests/produce/v3/request.js',
    sha256: '993a3db997827088f5acb08cacf3c67a99ec2886303ff465d244329b8a1c7f99',
    replace: original => quickProduceRequest(original as Parameters<typeof quickProduceRequest>[0]),
  },
  'coordinator-cache': {
    file: 'src/cluster/index.js',
    sha256: '3831a6845e4e9fb0de73d5ff50a3695974fb8a927acde677c524fe1c362bd57d',
    replace: original => {
      const { prototype } = original as {
        prototype: { findGroupCoordinator: Parameters<typeof rememberCoordinators>[0] }
      }
      prototype.findGroupCoordinator = rememberCoordinators(prototype.findGroupCoordinator)
      return original
    },
  },
} as const satisfies Record<string, Patch>

type PatchName = keyof typeof patches

export interface LoadOptions {
  /** Folder of the package; another copy of it can carry other patches in the same process. Default: the installed one. */
  readonly folder?: string
  /** Patches left out, to show what they prevent. */
  readonly without?: readonly PatchName[]
  /** Further modules to replace, by file inside the package, after the patches. */
  readonly replace?: Readonly<Record<string, ModuleReplacement>>
}

const require = createRequire(import.meta.url)
/** Set on the entry module's exports, so that a second evaluation of this file finds the patched client again. */
const clientKey = Symbol.for('weir.kafkajs.client')

/** kafkajs with its patches. Throws `prerequisite_missing` when another version or other source is installed. */
export function loadKafkajs(options: LoadOptions = {}): KafkajsClient {
  const folder = options.folder ?? dirname(require.resolve('kafkajs/package.json'))
  const entry = join(folder, 'index.js')
  const loaded = require.cache[entry]
  if (loaded) {
    const client = (loaded.exports as { [clientKey]?: KafkajsClient })[clientKey]
    if (client) return client
    throw new WeirError('prerequisite_missing', `kafkajs in ${folder} was loaded before its patches; load it only here`)
  }
  const inside: Inside = file => require(join(folder, file))
  checkVersion(folder)
  for (const [name, patch] of Object.entries<Patch>(patches)) {
    checkSource(folder, patch)
    if (!options.without?.includes(name as PatchName)) replaceModule(folder, patch.file, patch.replace, inside)
  }
  for (const [file, replace] of Object.entries(options.replace ?? {})) replaceModule(folder, file, replace, inside)
  const exports = require(entry) as KafkajsClient['kafkajs']
  const client: KafkajsClient = {
    kafkajs: exports,
    Cluster: inside('src/cluster/index.js') as KafkajsClient['Cluster'],
    Batch: inside('src/consumer/batch.js') as KafkajsClient['Batch'],
    createLogger: (inside('src/loggers/index.js') as Pick<KafkajsClient, 'createLogger'>).createLogger,
    createErrorFromCode: (inside('src/protocol/error.js') as Pick<KafkajsClient, 'createErrorFromCode'>)
      .createErrorFromCode,
  }
  Object.defineProperty(exports, clientKey, { value: client })
  return client
}

function checkVersion(folder: string): void {
  const { version } = require(join(folder, 'package.json')) as { version: string }
  if (version === pinnedVersion) return
  throw new WeirError(
    'prerequisite_missing',
    `kafkajs ${version} is installed in ${folder}, but its patches are written for exactly ${pinnedVersion}: run npm ci`,
    { context: { version, pinnedVersion, folder } },
  )
}

function checkSource(folder: string, patch: Patch): void {
  const found = createHash('sha256')
    .update(readFileSync(join(folder, patch.file)))
    .digest('hex')
  if (found === patch.sha256) return
  throw new WeirError(
    'prerequisite_missing',
    `${patch.file} of kafkajs is not the published file (SHA-256 ${found}, expected ${patch.sha256}): reinstall it with npm ci`,
    { context: { file: patch.file, found, expected: patch.sha256 } },
  )
}

function replaceModule(folder: string, file: string, replace: ModuleReplacement, inside: Inside): void {
  const original = inside(file)
  const module = require.cache[join(folder, file)]
  if (!module)
    throw new WeirError('prerequisite_missing', `${file} of kafkajs could not be replaced: it was not loaded`)
  module.exports = replace(original, inside)
}
