// Contracts without Avro: a value stays an object, and its bytes are where it is kept. Bytes that it did not give are unreadable.
import type { LogRecord } from '@weir/core'
import type { Decision, KeyState, Outcome, RawEvent, Release } from '@weir/schemas'
import type { DedupCodec, PolicyCodec } from './ports.ts'

const mark = 0x57
const tag = { event: 1, decision: 2, state: 3, release: 4, outcome: 5 } as const
type Tag = keyof typeof tag

type Decoded<T> =
  | { readonly kind: 'ok'; readonly value: T }
  | { readonly kind: 'fault'; readonly code: string; readonly detail: string }

export class ObjectCodec implements DedupCodec, PolicyCodec {
  readonly #objects: unknown[] = []

  encodeEvent(event: RawEvent): Buffer {
    return this.#encode('event', event)
  }

  encodeDecision(decision: Decision): Buffer {
    return this.#encode('decision', decision)
  }

  encodeState(state: KeyState): Buffer {
    return this.#encode('state', state)
  }

  encodeRelease(release: Release): Buffer {
    return this.#encode('release', release)
  }

  encodeOutcome(outcome: Outcome): Buffer {
    return this.#encode('outcome', outcome)
  }

  decodeOutcome(record: LogRecord): Decoded<Outcome> {
    return this.#decode<Outcome>('outcome', record.value)
  }

  decodeRaw(record: LogRecord): Decoded<RawEvent> {
    return this.decodeEvent(record.value)
  }

  decodeEvent(bytes: Buffer | null): Decoded<RawEvent> {
    return this.#decode<RawEvent>('event', bytes)
  }

  decodeDecision(record: LogRecord): Decoded<Decision> {
    return this.#decode<Decision>('decision', record.value)
  }

  decodeRelease(record: LogRecord): Decoded<Release> {
    return this.#decode<Release>('release', record.value)
  }

  #encode(name: Tag, value: unknown): Buffer {
    const bytes = Buffer.alloc(6)
    bytes[0] = mark
    bytes[1] = tag[name]
    bytes.writeUInt32BE(this.#objects.length, 2)
    this.#objects.push(value)
    return bytes
  }

  #decode<T>(name: Tag, bytes: Buffer | null): Decoded<T> {
    if (bytes === null) return { kind: 'fault', code: 'empty', detail: 'the value is null' }
    if (bytes.length !== 6 || bytes[0] !== mark || bytes[1] !== tag[name]) {
      return { kind: 'fault', code: 'malformed', detail: `the value is no ${name}` }
    }
    return { kind: 'ok', value: this.#objects[bytes.readUInt32BE(2)] as T }
  }
}
