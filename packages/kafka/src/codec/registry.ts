// The schema registry, through the Confluent REST protocol.
import { COMPATIBILITY, SchemaRegistry } from '@kafkajs/confluent-schema-registry'
import { WeirError } from '@weir/core'
import { contracts, type ContractName } from '@weir/schemas'
import type { AvroSchema } from './avro-bounds.ts'

const requestTimeoutMs = 5_000
/** Given in full: what is left out keeps the value of whoever made a client before in this process. */
const retry = { retries: 3, factor: 0.2, multiplier: 2, initialRetryTimeInSecs: 0.1, maxRetryTimeInSecs: 1 }

/**
 * Services are replaced one by one and records are kept for good, so old readers meet new records and new readers all old ones:
 * only changes that every version can read in both directions.
 */
const compatibility = COMPATIBILITY.FULL_TRANSITIVE

export function subjectOf(name: ContractName): string {
  return `dev.weir.${name}`
}

/** The text that is registered and looked up: both must be the same bytes. */
function schemaText(name: ContractName): string {
  return JSON.stringify(contracts[name])
}

/** Has no time-out of its own. */
const timeoutMiddleware = () => ({
  prepareRequest: (next: () => Promise<{ enhance(extras: { timeout: number }): unknown }>) =>
    next().then(request => request.enhance({ timeout: requestTimeoutMs })),
})

export class Registry {
  readonly #url: string
  readonly #client: SchemaRegistry

  constructor(url: string) {
    this.#url = url.replace(/\/+$/, '')
    this.#client = new SchemaRegistry({
      host: this.#url,
      clientId: 'weir',
      retry,
      middlewares: [timeoutMiddleware as never],
    })
  }

  /** The id under which a contract is registered, or null. Throws `registry_unavailable`. */
  async idOf(name: ContractName): Promise<number | null> {
    const schema = { type: 'AVRO', schema: schemaText(name) } as never
    return this.#orMissing(() => this.#client.getRegistryIdBySchema(subjectOf(name), schema))
  }

  /** The schema with this id; null when the registry does not know the id. Throws `registry_unavailable`. */
  async schemaOf(id: number): Promise<AvroSchema | null> {
    const found = await this.#orMissing(() => this.#client.getSchema(id))
    return found === null ? null : (JSON.parse(JSON.stringify(found)) as AvroSchema)
  }

  /** Registers a contract; its subject gets the compatibility level when it is new. Throws `schema_incompatible`. */
  async register(name: ContractName): Promise<number> {
    const subject = subjectOf(name)
    const schema = { type: 'AVRO', schema: schemaText(name) } as never
    try {
      const { id } = await this.#client.register(schema, { subject, compatibility })
      return id
    } catch (error) {
      const refused = [409, 422].includes(statusOf(error) ?? 0)
      if (!refused && !isNamed(error, 'ConfluentSchemaRegistryCompatibilityError')) throw this.#away(error)
      throw new WeirError('schema_incompatible', `subject ${subject} refuses the schema: ${textOf(error)}`, {
        cause: error,
        context: { subject, compatibility },
      })
    }
  }

  /** Why the registry would refuse the contract as the next version; empty when it would not. */
  async incompatibilities(name: ContractName): Promise<readonly string[]> {
    const subject = encodeURIComponent(subjectOf(name))
    const response = await this.#post(`/compatibility/subjects/${subject}/versions?verbose=true`, {
      schema: schemaText(name),
    })
    if (response.status === 404) return []
    const answer = (await response.json()) as {
      is_compatible?: boolean
      messages?: readonly string[]
      message?: string
    }
    if (answer.is_compatible === true) return []
    const reasons = answer.messages ?? []
    return reasons.length > 0 ? reasons : [answer.message ?? `the registry answered ${response.status}`]
  }

  async #post(path: string, body: object): Promise<Response> {
    try {
      const response = await fetch(this.#url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/vnd.schemaregistry.v1+json' },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(requestTimeoutMs),
      })
      if (response.status >= 500) throw new Error(`status ${response.status}`)
      return response
    } catch (error) {
      throw this.#away(error)
    }
  }

  async #orMissing<T>(ask: () => Promise<T>): Promise<T | null> {
    try {
      return await ask()
    } catch (error) {
      if (statusOf(error) === 404 || isNamed(error, 'ConfluentSchemaRegistryInvalidSchemaError')) return null
      throw this.#away(error)
    }
  }

  #away(cause: unknown): WeirError {
    return new WeirError(
      'registry_unavailable',
      `the schema registry at ${this.#url} does not answer: ${textOf(cause)}`,
      {
        cause,
        context: { url: this.#url, status: statusOf(cause) },
      },
    )
  }
}

function statusOf(error: unknown): number | null {
  const status = (error as { readonly status?: unknown } | null)?.status
  return typeof status === 'number' ? status : null
}

const isNamed = (error: unknown, name: string): boolean => error instanceof Error && error.name === name
const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
