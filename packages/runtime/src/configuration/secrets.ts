import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import type { SecretReference } from '@weir/core'
import type { ReferenceDocument, SecretReferenceDocument } from './document-schema.ts'
import type { ConfigPath, Problem } from './problems.ts'

/** Shorter secrets can be guessed from one signed request. */
const minSecretBytes = 16

/** Secrets that stand in documentation, tutorials and examples: everybody has them. */
const publishedSecrets: readonly string[] = [
  "It's a Secret to Everybody",
  'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLjSw',
  'whsec_plJ3nmyCDGBKInavdOK15jsl',
  'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD',
  'whsec_test_secret',
  'changeme',
  'change-me',
  'changeit',
  'change-me-please',
  'default',
  'password',
  'secret',
  'supersecret',
  'super-secret-value',
  'your-secret-here',
  'your-webhook-secret',
  'my-webhook-secret',
  'test',
  'example',
]
const published = new Set(publishedSecrets.map(text => text.toLowerCase()))
const publishedHashes = new Set(['', ...publishedSecrets].map(text => createHash('sha256').update(text).digest('hex')))

/** Reads references. Collects problems instead of throwing, so that all are reported at once. */
export interface SecretResolver {
  secret(reference: SecretReferenceDocument, path: ConfigPath): Promise<SecretReference | null>
  /** A SHA-256 in hex, literal or by reference. */
  keyHash(value: string | ReferenceDocument, path: ConfigPath): Promise<string | null>
  readonly problems: readonly Problem[]
}

/** Sections of weir.yaml that refer to secrets or key hashes. */
export const secretHolders = ['sources', 'clients', 'agents', 'analysts'] as const
export type SecretHolder = (typeof secretHolders)[number]

/** `of`: the sections whose references are read; those of others come back as `null`, without a problem. */
export function createSecretResolver(env: NodeJS.ProcessEnv, of: readonly SecretHolder[]): SecretResolver {
  const problems: Problem[] = []
  const isNeeded = (path: ConfigPath): boolean => of.some(section => section === path[0])
  const fault = (path: ConfigPath, message: string): null => {
    problems.push({ path, message })
    return null
  }
  const read = async (reference: ReferenceDocument, path: ConfigPath): Promise<string | null> => {
    const found = await readReference(reference, env)
    return found.kind === 'value' ? found.text : fault(path, found.message)
  }
  return {
    problems,
    secret: async (reference, path) => {
      if (!isNeeded(path)) return null
      const text = await read(reference, path)
      if (text === null) return null
      const reason = secretFault(text)
      if (reason !== null) return fault(path, `${nameOf(reference)} ${reason}`)
      return hiddenSecret(reference, text)
    },
    keyHash: async (value, path) => {
      if (!isNeeded(path)) return null
      const text = typeof value === 'string' ? value : await read(value, path)
      if (text === null) return null
      const where = typeof value === 'string' ? 'it' : nameOf(value)
      if (!/^[0-9a-f]{64}$/i.test(text)) {
        return fault(path, `${where} is not a SHA-256 in hex (64 digits): put the hash of the key there, not the key`)
      }
      const hash = text.toLowerCase()
      return publishedHashes.has(hash)
        ? fault(path, `${where} is the hash of an empty or published key: make a random key`)
        : hash
    },
  }
}

type Read = { readonly kind: 'value'; readonly text: string } | { readonly kind: 'fault'; readonly message: string }

async function readReference(reference: ReferenceDocument, env: NodeJS.ProcessEnv): Promise<Read> {
  const name = nameOf(reference)
  let text: string | undefined
  if (reference.file === undefined) text = env[reference.env ?? '']
  else {
    try {
      text = await readFile(reference.file, 'utf8')
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
      return { kind: 'fault', message: `the file ${name} cannot be read (${code}): create it or correct the path` }
    }
  }
  // A file made by a person or a secret store mostly ends in a line feed that is no part of the secret.
  const trimmed = text?.replace(/\r?\n$/, '')
  if (trimmed === undefined) return { kind: 'fault', message: `the environment variable ${name} is not set: set it` }
  if (trimmed === '') return { kind: 'fault', message: `${name} is empty: put the secret there` }
  return { kind: 'value', text: trimmed }
}

function secretFault(text: string): string | null {
  if (published.has(text.toLowerCase())) return 'is a published default: make a random secret'
  const bytes = Buffer.byteLength(text)
  if (bytes < minSecretBytes) return `has ${bytes} bytes: a secret needs at least ${minSecretBytes}, made at random`
  return null
}

function nameOf(reference: ReferenceDocument): string {
  return reference.env ?? reference.file ?? ''
}

/** The value is not enumerable: neither a log line nor JSON of the configuration can contain it. */
function hiddenSecret(reference: SecretReferenceDocument, text: string): SecretReference {
  const shown = {
    id: reference.id ?? (reference.file === undefined ? nameOf(reference) : basename(reference.file)),
    notAfterMs: reference.notAfter === undefined ? null : Date.parse(reference.notAfter),
  }
  return Object.defineProperty(shown, 'value', { value: text, enumerable: false }) as SecretReference
}
