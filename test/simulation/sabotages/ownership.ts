// Rules of the runner and of the broker's client: take-over, fence, transaction.
import type { Broker, LogReader, PartitionWriter, Position, TransactionResult, WriterOptions } from '@weir/core'
import type { Alterations, Place } from '../context.ts'
import { dedupOnly, withHandler, type Sabotage } from './sabotage.ts'

type Batch = Parameters<PartitionWriter['run']>[0]

/** Another answer of every writer's transactions. */
function withWriters(
  broker: Broker,
  run: (writer: PartitionWriter, batch: Batch, options: WriterOptions) => Promise<TransactionResult>,
): Broker {
  return {
    ...broker,
    openWriter: async options => {
      const writer = await broker.openWriter(options)
      return { run: batch => run(writer, batch, options), close: () => writer.close() }
    },
  }
}

function withReaders(broker: Broker, change: (reader: LogReader) => LogReader): Broker {
  return { ...broker, openReader: async () => change(await broker.openReader()) }
}

/** Nobody asks the stage's own outputs at a take-over. */
const withoutOwnOutputs: Pick<Alterations, 'stage'> = { stage: options => [{ ...options, ownOutputs: [] }] }

export const ownership: readonly Sabotage[] = [
  {
    name: 'epoch-unchecked',
    what: 'the claim does not compare the epoch of the owner row',
    stages: dedupOnly,
    make: () => ({
      ownerModel: (model, world) => ({
        ...model,
        own: (given, positions) => {
          const row = world.tables.owners.get(`${given.stage}/${given.partition}`)
          return model.own({ ...given, epoch: row?.epoch ?? given.epoch }, positions)
        },
      }),
    }),
  },
  {
    name: 'no-fence',
    what: 'each instance has transactional ids of its own, so that a take-over fences nobody in Kafka',
    stages: dedupOnly,
    make: () => {
      let writers = 0
      return {
        broker: broker => ({
          ...broker,
          openWriter: options =>
            broker.openWriter({ ...options, transactionalId: `${options.transactionalId}-${writers++}` }),
        }),
      }
    },
  },
  {
    name: 'offsets-before-fence',
    what: 'the committed offsets are read before the former owner is fenced',
    stages: dedupOnly,
    make: () => ({ ...offsetsBeforeFence(), ...withoutOwnOutputs }),
  },
  {
    name: 'start-at-committed',
    what: 'a take-over starts at the committed offset, whatever the owner row and the own outputs say',
    stages: dedupOnly,
    make: () => ({
      ...withoutOwnOutputs,
      owners: owners => ({
        ...owners,
        takeOver: async (stage, partition) => {
          const taken = await owners.takeOver(stage, partition)
          return { ...taken, positions: taken.positions.map(position => ({ ...position, emittedBelow: 0 })) }
        },
      }),
    }),
  },
  {
    name: 'own-outputs-unasked',
    what: 'a take-over trusts the owner row, which is stored with the next claim, and does not ask what was emitted',
    stages: dedupOnly,
    make: () => withoutOwnOutputs,
  },
  {
    name: 'rows-not-rebuilt',
    what: 'rows that Postgres lost are not made again from what was emitted',
    stages: dedupOnly,
    make: () => ({ handler: handler => withHandler(handler, { rebuild: () => Promise.resolve({ restored: 0 }) }) }),
  },
  {
    name: 'offsets-outside',
    what: 'the input offset is committed after the transaction and not in it',
    stages: dedupOnly,
    make: () => ({
      ...withoutOwnOutputs,
      broker: broker =>
        withWriters(broker, async (writer, { records, positions }) => {
          const result = await writer.run({ records, positions: [] })
          return result.kind === 'committed' ? await writer.run({ records: [], positions }) : result
        }),
    }),
  },
  {
    name: 'offsets-first',
    what: 'the input offset is committed before the outputs',
    stages: dedupOnly,
    make: () => ({
      broker: broker =>
        withWriters(broker, async (writer, { records, positions }) => {
          const result = await writer.run({ records: [], positions })
          return result.kind === 'committed' ? await writer.run({ records, positions: [] }) : result
        }),
    }),
  },
  {
    name: 'unknown-is-committed',
    what: 'a commit whose answer was lost counts as committed',
    stages: dedupOnly,
    make: () => ({
      broker: broker => withWriters(broker, async (writer, batch) => committedIf('unknown', await writer.run(batch))),
    }),
  },
  {
    name: 'unknown-is-aborted',
    what: 'a transaction whose answer was lost counts as aborted and is run again, without reading offsets again',
    stages: dedupOnly,
    make: () => ({
      broker: broker => ({
        ...broker,
        openWriter: async options => retryingWriter(broker, options, await broker.openWriter(options)),
      }),
    }),
  },
  {
    name: 'fenced-is-committed',
    what: 'a fenced writer goes on as if its transaction had been committed',
    stages: dedupOnly,
    make: () => ({
      broker: broker => withWriters(broker, async (writer, batch) => committedIf('fenced', await writer.run(batch))),
    }),
  },
  {
    name: 'position-of-next-batch',
    what: 'positions are stored one record further than what was committed',
    stages: dedupOnly,
    make: () => ({
      ownerModel: model => ({
        ...model,
        own: (given, positions) =>
          model.own(
            given,
            positions.map(position => ({ ...position, emittedBelow: position.emittedBelow + 1 })),
          ),
      }),
    }),
  },
  {
    name: 'uncommitted-read',
    what: 'readers see records of open and aborted transactions',
    stages: ['dedup', 'policy'],
    make: () => ({ broker: (broker, place) => withReaders(broker, reader => uncommittedReader(reader, place)) }),
  },
  {
    name: 'two-writers',
    what: 'one partition number has two owners, under two names',
    stages: dedupOnly,
    make: () => ({
      stage: options => [
        options,
        {
          ...options,
          stage: `${options.stage}-too`,
          group: `${options.group}-too`,
          transactionalIdPrefix: `${options.transactionalIdPrefix}too.`,
        },
      ],
    }),
  },
]

function offsetsBeforeFence(): Alterations {
  const early = new Map<string, readonly Position[]>()
  return {
    owners: (owners, { world, stage, instance }) => ({
      ...owners,
      takeOver: async (name, partition) => {
        const inputs = stage === 'dedup' ? [world.topics.raw] : [world.topics.events, world.topics.released]
        const positions = inputs.flatMap(topic => {
          const nextOffset = world.cluster.committedOffset(stage, { topic, partition })
          return nextOffset === null ? [] : [{ topic, partition, nextOffset }]
        })
        early.set(`${instance}/${partition}`, positions)
        return await owners.takeOver(name, partition)
      },
    }),
    broker: (broker, { instance }) => ({
      ...broker,
      admin: {
        ...broker.admin,
        committed: async (group, places) =>
          early.get(`${instance}/${places[0]?.partition ?? 0}`) ?? (await broker.admin.committed(group, places)),
      },
    }),
  }
}

function committedIf(kind: TransactionResult['kind'], result: TransactionResult): TransactionResult {
  return result.kind === kind ? { kind: 'committed' } : result
}

function retryingWriter(broker: Broker, options: WriterOptions, first: PartitionWriter): PartitionWriter {
  let writer = first
  return {
    run: async batch => {
      const result = await writer.run(batch)
      if (result.kind !== 'unknown') return result
      writer = await broker.openWriter(options)
      return await writer.run(batch)
    },
    close: () => writer.close(),
  }
}

function uncommittedReader(reader: LogReader, { world }: Place): LogReader {
  return {
    close: () => reader.close(),
    fetch: async request => {
      const fetched = await reader.fetch(request)
      const all = world.cluster.log(request).scan()
      const records = all.map(({ record }) => record).filter(({ offset }) => offset >= request.fromOffset)
      const nextOffset = Math.max(fetched.nextOffset, (records.at(-1)?.offset ?? -1) + 1)
      return { ...fetched, records, nextOffset }
    },
  }
}
