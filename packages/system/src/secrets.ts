import { createHash, randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/** What the example configuration refers to, made at random for one local installation. Never leaves its folder. */
export interface LocalSecrets {
  /** Variables that weir.yaml refers to: webhook secrets and hashes of API keys. */
  readonly environment: Readonly<Record<string, string>>
  /** The API keys themselves, by client, agent or analyst name, for `weir send`, `weir why` and agents' reports. */
  readonly apiKeys: Readonly<Record<'acme-api' | 'globex-api' | 'refunds' | 'analyst', string>>
  /** Passwords of the services' database logins. */
  readonly passwords: Readonly<Record<'ingest' | 'dedup' | 'policy' | 'audit_sink' | 'audit_reader', string>>
}

const hex = (bytes: number): string => randomBytes(bytes).toString('hex')
const whsec = (): string => `whsec_${randomBytes(24).toString('base64')}`
const sha256Hex = (text: string): string => createHash('sha256').update(text).digest('hex')

export function makeSecrets(): LocalSecrets {
  const key = (): string => `wk_${hex(24)}`
  const apiKeys = { 'acme-api': key(), 'globex-api': key(), refunds: key(), analyst: key() }
  return {
    apiKeys,
    environment: {
      WEIR_SECRET_GITHUB: hex(24),
      WEIR_SECRET_STRIPE: whsec(),
      WEIR_SECRET_SHOP: whsec(),
      WEIR_SECRET_DEPLOYS: hex(24),
      WEIR_KEY_ACME_API_SHA256: sha256Hex(apiKeys['acme-api']),
      WEIR_KEY_GLOBEX_API_SHA256: sha256Hex(apiKeys['globex-api']),
      WEIR_KEY_AGENT_REFUNDS_SHA256: sha256Hex(apiKeys.refunds),
      WEIR_KEY_ANALYST_SHA256: sha256Hex(apiKeys.analyst),
    },
    passwords: { ingest: hex(18), dedup: hex(18), policy: hex(18), audit_sink: hex(18), audit_reader: hex(18) },
  }
}

/** The secrets of a folder; what is missing is made. Only the owner can read the file. */
export function localSecrets(file: string): LocalSecrets {
  const made = makeSecrets()
  const known = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Partial<LocalSecrets>) : {}
  const secrets: LocalSecrets = {
    apiKeys: { ...made.apiKeys, ...known.apiKeys },
    environment: { ...made.environment, ...known.environment },
    passwords: { ...made.passwords, ...known.passwords },
  }
  if (JSON.stringify(known) === JSON.stringify(secrets)) return secrets
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  writeFileSync(file, JSON.stringify(secrets, null, 2), { mode: 0o600 })
  return secrets
}
