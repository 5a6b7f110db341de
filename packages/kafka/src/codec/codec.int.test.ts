import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { SchemaRegistry } from '@kafkajs/confluent-schema-registry'
import { contracts, type ContractName, type KeyState } from '@weir/schemas'
import avsc from 'avsc'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { registryUrl, silentLog } from '../testing/dev-stack.ts'
import { createCodec, type Codec } from './codec.ts'
import { pushSchemas } from './push-schemas.ts'

const state: KeyState = {
  ...(avsc.Type.forSchema(contracts.KeyState as unknown as avsc.Schema).random() as unknown as KeyState),
  tenant: 'acme',
  eventKeyText: 'acme/github/1',
}

/** The registry behind a door that can be shut. */
class Door {
  readonly #server: Server
  isShut = false
  requests = 0

  constructor() {
    this.#server = createServer((request, response) => {
      this.requests++
      if (this.isShut) return void request.socket.destroy()
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        const body = chunks.length === 0 ? null : Buffer.concat(chunks)
        const init = { method: request.method ?? 'GET', body, headers: { 'content-type': 'application/json' } }
        void fetch(registryUrl() + request.url, init).then(async answer => {
          response.writeHead(answer.status, { 'content-type': 'application/json' })
          response.end(await answer.text())
        })
      })
    })
  }

  async open(): Promise<string> {
    await new Promise<void>(resolve => this.#server.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  close(): Promise<unknown> {
    return new Promise(resolve => this.#server.close(resolve))
  }
}

/** Registers a schema of its own under a subject of this test and returns bytes written with it. */
async function written(schema: object, value: object): Promise<Buffer> {
  const registry = new SchemaRegistry({ host: registryUrl() })
  const subject = `test.${process.hrtime.bigint()}`
  const { id } = await registry.register({ type: 'AVRO', schema: JSON.stringify(schema) } as never, { subject })
  return registry.encode(id, value)
}

describe('codec on a real registry', () => {
  const door = new Door()
  let codec: Codec

  beforeAll(async () => {
    await pushSchemas({ registryUrl: registryUrl() })
    codec = await createCodec({ registryUrl: await door.open(), log: silentLog })
  })
  afterAll(() => door.close())

  it('registers all contracts, and again without a change', async () => {
    const first = await pushSchemas({ registryUrl: registryUrl() })
    expect(first.map(({ name }) => name)).toEqual(Object.keys(contracts))
    expect(await pushSchemas({ registryUrl: registryUrl() })).toEqual(first)
    expect(await pushSchemas({ registryUrl: registryUrl(), check: true })).toEqual(first)
  })

  it.each(Object.keys(contracts) as ContractName[])('decodes at once what it encoded as %s', name => {
    const value = avsc.Type.forSchema(contracts[name] as unknown as avsc.Schema).random() as never
    const decoded = codec.decode(name, codec.encode(name, value))
    expect(decoded).toMatchObject({ kind: 'ok' })
    expect(codec.encode(name, (decoded as unknown as { value: never }).value)).toEqual(codec.encode(name, value))
  })

  it('is read by the registry client, and encodes values larger than its scratch space', async () => {
    const large = { ...state, eventKeyText: 'x'.repeat(300_000) }
    const registry = new SchemaRegistry({ host: registryUrl() })
    const decoded = (await registry.decode(codec.encode('KeyState', large))) as KeyState
    expect(decoded.eventKeyText).toHaveLength(300_000)
  })

  it('reads records of a writer with another field, and asks the registry once for all of them', async () => {
    const { fields, ...rest } = contracts.KeyState
    const newer = { ...rest, fields: [...fields, { name: 'added', type: 'string', default: '' }] }
    const bytes = await written(newer, { ...state, added: 'new' })
    const before = door.requests
    const decoded = await Promise.all([1, 2, 3].map(async () => codec.decode('KeyState', bytes)))
    expect(decoded.map(({ kind }) => kind)).toEqual(['ok', 'ok', 'ok'])
    expect(codec.decode('KeyState', bytes)).toMatchObject({ kind: 'ok', value: { tenant: 'acme' } })
    expect(door.requests - before).toBe(1)
  })

  it('says malformed for a schema that is another record', async () => {
    const other = { type: 'record', name: 'Other', namespace: 'test', fields: [{ name: 'a', type: 'int' }] }
    expect(await codec.decode('KeyState', await written(other, { a: 1 }))).toMatchObject({
      kind: 'fault',
      code: 'malformed',
    })
  })

  it('says schema_unknown for an id the registry does not know, and does not ask each time', async () => {
    const bytes = codec.encode('KeyState', state)
    bytes.writeInt32BE(2_000_000_000, 1)
    expect(await codec.decode('KeyState', bytes)).toMatchObject({ kind: 'fault', code: 'schema_unknown' })
    const before = door.requests
    expect(codec.decode('KeyState', bytes)).toMatchObject({ kind: 'fault', code: 'schema_unknown' })
    expect(door.requests).toBe(before)
  })

  it('says what is wrong with bytes that are no record', () => {
    const code = (bytes: Buffer | null) => {
      const decoded = codec.decode('KeyState', bytes)
      return 'kind' in decoded && decoded.kind === 'fault' ? decoded.code : decoded
    }
    const good = codec.encode('KeyState', state)
    expect(code(null)).toBe('empty')
    expect(code(Buffer.alloc(0))).toBe('empty')
    expect(code(Buffer.from('{"a":1}'))).toBe('malformed')
    expect(code(good.subarray(0, 3))).toBe('malformed')
    expect(code(good.subarray(0, good.length - 1))).toBe('malformed')
    expect(code(Buffer.concat([good, Buffer.from([0])]))).toBe('malformed')
  })

  it('throws registry_unavailable, not a fault, while the registry is away, and recovers', async () => {
    const { fields, ...rest } = contracts.KeyState
    const newer = { ...rest, fields: [...fields, { name: 'later', type: 'int', default: 0 }] }
    const bytes = await written(newer, { ...state, later: 1 })
    door.isShut = true
    await expect(codec.decode('KeyState', bytes)).rejects.toMatchObject({ code: 'registry_unavailable' })
    expect(codec.decode('KeyState', codec.encode('KeyState', state))).toMatchObject({ kind: 'ok' })
    door.isShut = false
    expect(await codec.decode('KeyState', bytes)).toMatchObject({ kind: 'ok' })
  })

  it('throws a TypeError that names the contract for a value that does not fit it', () => {
    expect(() => codec.encode('KeyState', { ...state, tenant: 7 } as never)).toThrow(/does not fit contract KeyState/)
  })
})
