// What the cases of the broker port stand on.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Ack, Broker, LogRecord, OutRecord, TopicPartition } from '@weir/core'

/** A point where the answer of a request can be lost: the broker has done it, the caller does not hear of it. */
export type LosablePoint = 'publish' | 'offsets' | 'commit'

/** One process' connection to the cluster. */
export interface Party {
  readonly broker: Broker
  /** The next answer at this point does not arrive. */
  readonly loseAnswer: (at: LosablePoint) => void
}

export interface BrokerHarness {
  connect(): Promise<Party>
  createTopic(topic: string, options: { readonly partitions: number; readonly maxMessageBytes?: number }): Promise<void>
  deleteTopic(topic: string): Promise<void>
  /** As retention does. */
  removeBelow(tp: TopicPartition, offset: number): Promise<void>
  /** The coordinator throws all members out. */
  evictMembers(group: string): Promise<void>
  close(): Promise<void>
}

export const partitions = 4
export const sessionTimeoutMs = 6_000

/** A topic of its own, with what the cases need around it. */
export class World {
  readonly harness: BrokerHarness
  readonly name: string
  readonly #closers: (() => Promise<void>)[] = []

  constructor(harness: BrokerHarness, name: string) {
    this.harness = harness
    this.name = name
  }

  async party(): Promise<Party> {
    const party = await this.harness.connect()
    this.#closers.push(() => party.broker.close())
    return party
  }

  async topic(suffix = 'a', maxMessageBytes = 100_000): Promise<string> {
    const topic = `${this.name}.${suffix}`
    await this.harness.createTopic(topic, { partitions, maxMessageBytes })
    this.#closers.push(() => this.harness.deleteTopic(topic))
    return topic
  }

  async close(): Promise<void> {
    for (const close of this.#closers.reverse()) await close()
  }
}

export const out = (topic: string, text: string, partition = 0): OutRecord => ({
  topic,
  partition,
  key: Buffer.from(text),
  value: Buffer.from(text),
  headers: [],
})
export const textOf = ({ value }: LogRecord) => value?.toString() ?? null
export const offsetsOf = (acks: readonly Ack[]) => acks.map(({ offset }) => offset)

/** Everything a reader sees from an offset up to the end of what is stable, and where it stands then. */
export async function readAll(broker: Broker, topic: string, fromOffset = 0, partition = 0) {
  const reader = await broker.openReader()
  const records: LogRecord[] = []
  let position = fromOffset
  try {
    for (;;) {
      const fetched = await reader.fetch({ topic, partition, fromOffset: position, maxWaitMs: 50 })
      records.push(...fetched.records)
      const isAtEnd = fetched.nextOffset >= fetched.lastStableOffset
      position = fetched.nextOffset
      if (isAtEnd) return { records, texts: records.map(textOf), position, fetched }
    }
  } finally {
    await reader.close()
  }
}

export async function until(what: string, holds: () => boolean, withinMs = 30_000): Promise<void> {
  const deadline = performance.now() + withinMs
  while (!holds()) {
    if (performance.now() > deadline) throw new Error(`waited ${withinMs} ms in vain until ${what}`)
    await sleep(20)
  }
}

export type Case = readonly [title: string, run: (world: World) => Promise<void>]
