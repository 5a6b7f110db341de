// Avro with Confluent framing: a zero byte, the schema id (4 bytes, big-endian), then the value. avsc encodes and decodes; the
// registry is asked once per id. What is wrong with the data is a value; what is wrong with the registry is thrown.
import { WeirError, type Log } from '@weir/core'
import { contracts, type ContractName, type Contracts } from '@weir/schemas'
import avsc from 'avsc'
import { boundsCheck, type AvroSchema, type BoundsCheck } from './avro-bounds.ts'
import { Registry, subjectOf } from './registry.ts'

export type DecodeFault = 'schema_unknown' | 'malformed' | 'empty'

export type Decoded<Name extends ContractName = ContractName> =
  | { readonly kind: 'ok'; readonly value: Contracts[Name] }
  | { readonly kind: 'fault'; readonly code: DecodeFault; readonly detail: string }

export interface Codec {
  /** Throws a TypeError when the value does not fit the contract: that is a bug of the caller. */
  encode<Name extends ContractName>(name: Name, value: Contracts[Name]): Buffer
  /**
   * At once when the writer's schema id was seen before, else after asking the registry. Never throws for data; throws
   * `registry_unavailable` (retriable) while the registry is away and the id was never seen.
   */
  decode<Name extends ContractName>(name: Name, bytes: Buffer | null): Decoded<Name> | Promise<Decoded<Name>>
}

const headerBytes = 5
const magicByte = 0
/** An id the registry did not know is asked for again after this time. */
const unknownAgeMs = 60_000
const maxDetailLength = 200

/** How to read what one writer wrote. */
interface WriterView {
  readonly check: BoundsCheck
  /** None for our own schema: reading without one is quicker. */
  readonly resolver: ReturnType<avsc.Type['createResolver']> | undefined
}
type Lookup = WriterView | { readonly fault: string; readonly code: DecodeFault; readonly untilMs: number }

interface Contract {
  readonly type: avsc.Type
  readonly writerId: number
  readonly writers: Map<number, Lookup>
}

export interface CodecOptions {
  /** Base of the Confluent REST protocol, for example `http://registry:8080/apis/ccompat/v7`. */
  readonly registryUrl: string
  readonly log: Log
}

/** Looks up the id of every contract. Throws `schema_missing` naming all that are not registered, or `registry_unavailable`. */
export async function createCodec(options: CodecOptions): Promise<Codec> {
  const registry = new Registry(options.registryUrl)
  const known = new Map<ContractName, Contract>()
  const missing: string[] = []
  for (const name of Object.keys(contracts) as ContractName[]) {
    const writerId = await registry.idOf(name)
    if (writerId === null) {
      missing.push(subjectOf(name))
      continue
    }
    const schema = contracts[name] as unknown as AvroSchema
    const type = avsc.Type.forSchema(schema as avsc.Schema)
    known.set(name, {
      type,
      writerId,
      writers: new Map([[writerId, { check: boundsCheck(schema), resolver: undefined }]]),
    })
  }
  if (missing.length > 0) {
    throw new WeirError('schema_missing', `the registry at ${options.registryUrl} has no ${missing.join(', ')}`, {
      context: { missing, registryUrl: options.registryUrl },
    })
  }
  return new AvroCodec(registry, known, options.log)
}

function viewOf(reader: avsc.Type, writer: AvroSchema): WriterView {
  const writerType = avsc.Type.forSchema(writer as avsc.Schema)
  return { check: boundsCheck(writer), resolver: reader.createResolver(writerType) }
}

class AvroCodec implements Codec {
  readonly #registry: Registry
  readonly #contracts: ReadonlyMap<ContractName, Contract>
  readonly #log: Log
  readonly #asking = new Map<string, Promise<Lookup>>()
  /** Values are written here first: their size is not known before. */
  #scratch = Buffer.allocUnsafe(65_536)

  constructor(registry: Registry, known: ReadonlyMap<ContractName, Contract>, log: Log) {
    this.#registry = registry
    this.#contracts = known
    this.#log = log
  }

  encode<Name extends ContractName>(name: Name, value: Contracts[Name]): Buffer {
    const { type, writerId } = this.#contract(name)
    try {
      let end = type.encode(value, this.#scratch, headerBytes)
      if (end < 0) {
        this.#scratch = Buffer.allocUnsafe(2 * (this.#scratch.length - end))
        end = type.encode(value, this.#scratch, headerBytes)
      }
      this.#scratch[0] = magicByte
      this.#scratch.writeInt32BE(writerId, 1)
      return Buffer.from(this.#scratch.subarray(0, end))
    } catch (error) {
      throw new TypeError(`a value does not fit contract ${name}: ${textOf(error)}`, { cause: error })
    }
  }

  decode<Name extends ContractName>(name: Name, bytes: Buffer | null): Decoded<Name> | Promise<Decoded<Name>> {
    if (bytes === null || bytes.length === 0) return fault('empty', 'the record has no value')
    if (bytes.length <= headerBytes) return fault('malformed', `${bytes.length} bytes are too few`)
    if (bytes[0] !== magicByte) return fault('malformed', `the first byte is ${bytes[0]}, not 0`)
    const contract = this.#contract(name)
    const writerId = bytes.readInt32BE(1)
    const lookup = contract.writers.get(writerId)
    if (lookup && !isStale(lookup)) return read(contract.type, lookup, bytes)
    return this.#ask(name, contract, writerId).then(found => read(contract.type, found, bytes))
  }

  #contract(name: ContractName): Contract {
    const contract = this.#contracts.get(name)
    if (!contract) throw new TypeError(`there is no contract ${name}`)
    return contract
  }

  /** One question per contract and id, however many records wait for it. */
  #ask(name: ContractName, contract: Contract, writerId: number): Promise<Lookup> {
    const key = `${name}/${writerId}`
    const asking = this.#asking.get(key) ?? this.#lookUp(name, contract, writerId)
    this.#asking.set(key, asking)
    return asking.finally(() => this.#asking.delete(key))
  }

  async #lookUp(name: ContractName, contract: Contract, writerId: number): Promise<Lookup> {
    const schema = await this.#registry.schemaOf(writerId)
    const lookup = schema === null ? unknown(writerId) : this.#resolve(contract.type, schema, writerId, name)
    contract.writers.set(writerId, lookup)
    return lookup
  }

  #resolve(reader: avsc.Type, schema: AvroSchema, writerId: number, name: ContractName): Lookup {
    try {
      return viewOf(reader, schema)
    } catch (error) {
      this.#log.warn(
        { err: error, writerId, contract: name },
        'a record was written with a schema this contract cannot read',
      )
      const text = `schema ${writerId} cannot be read as ${name}: ${textOf(error)}`
      return { code: 'malformed', fault: text, untilMs: Infinity }
    }
  }
}

function unknown(writerId: number): Lookup {
  const text = `the registry does not know schema ${writerId}`
  return { code: 'schema_unknown', fault: text, untilMs: performance.now() + unknownAgeMs }
}

const isStale = (lookup: Lookup): boolean => 'untilMs' in lookup && lookup.untilMs < performance.now()

function read<Name extends ContractName>(type: avsc.Type, lookup: Lookup, bytes: Buffer): Decoded<Name> {
  if ('fault' in lookup) return fault(lookup.code, lookup.fault)
  const outOfBounds = lookup.check(bytes, headerBytes)
  if (outOfBounds !== null) return fault('malformed', outOfBounds)
  try {
    const value = type.fromBuffer(bytes.subarray(headerBytes), lookup.resolver) as Contracts[Name]
    return { kind: 'ok', value }
  } catch (error) {
    return fault('malformed', textOf(error))
  }
}

function fault(code: DecodeFault, detail: string): Extract<Decoded, { kind: 'fault' }> {
  return { kind: 'fault', code, detail: detail.slice(0, maxDetailLength) }
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
