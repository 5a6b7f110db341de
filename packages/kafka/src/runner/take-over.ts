// Step 0 of the one mechanism: raise the epoch, fence the last owner in Kafka, *then* read the committed offsets, and start at
// max(committed offset, emitted_below).
import {
  WeirError,
  type LogPosition,
  type LogReader,
  type Ownership,
  type PartitionWriter,
  type TopicDescription,
} from '@weir/core'
import { findOwnOutputs } from './own-outputs.ts'
import type { StageAlarm, StageOptions } from './stage-options.ts'

/** Where an input stands after take-over. `emittedBelow` is what is known committed: reading starts there. */
export interface Taken {
  readonly ownership: Ownership
  readonly writer: PartitionWriter
  readonly positions: readonly LogPosition[]
}

interface InputState {
  readonly topic: string
  readonly logId: string
  readonly stored: LogPosition | null
  readonly committed: number | null
  readonly startOffset: number
}

export async function takeOver(
  options: StageOptions,
  partition: number,
  reader: LogReader,
  signal: AbortSignal,
): Promise<Taken> {
  const { owners, stage } = options
  const { ownership, positions: stored } = await owners.takeOver(stage, partition)
  const writer = await openWriter(options, partition)
  try {
    const inputs = await readInputs(options, partition, stored)
    const recovered = await recover(options, { partition, inputs, reader, signal, ownership })
    const positions = inputs.map(input => startOf(options, partition, input, recovered))
    if (!(await owners.advance(ownership, positions))) {
      throw new WeirError('fenced', `another instance took over ${stage} ${partition} during take-over`)
    }
    return { ownership, writer: await repairOffsets(options, partition, { writer, inputs, positions }), positions }
  } catch (error) {
    await writer.close()
    throw error
  }
}

/** A group offset that went back is set right, so that lag is true and the next take-over has nothing to alarm about. */
async function repairOffsets(
  options: StageOptions,
  partition: number,
  state: {
    readonly writer: PartitionWriter
    readonly inputs: readonly InputState[]
    readonly positions: readonly LogPosition[]
  },
): Promise<PartitionWriter> {
  const behind = state.positions.filter(position => {
    const committed = state.inputs.find(input => input.topic === position.topic)?.committed ?? 0
    return committed < position.emittedBelow
  })
  if (behind.length === 0) return state.writer
  const positions = behind.map(({ topic, emittedBelow }) => ({ topic, partition, nextOffset: emittedBelow }))
  const result = await state.writer.run({ records: [], positions })
  if (result.kind === 'committed') return state.writer
  throw new WeirError(
    'fenced',
    `${options.stage} ${partition}: the group offset could not be set right (${result.kind})`,
  )
}

/** Opening fences: when it resolves, no other owner can commit under this transactional id, and offsets read are final. */
export function openWriter(options: StageOptions, partition: number): Promise<PartitionWriter> {
  const { faultPoint, stage } = options
  return options.broker.openWriter({
    transactionalId: `${options.transactionalIdPrefix}${partition}`,
    group: options.group,
    ...(faultPoint === undefined ? {} : { beforeCommit: () => faultPoint(`${stage}.in-transaction`) }),
  })
}

async function readInputs(
  options: StageOptions,
  partition: number,
  stored: readonly LogPosition[],
): Promise<readonly InputState[]> {
  const { admin } = options.broker
  const tps = options.inputs.map(topic => ({ topic, partition }))
  const [described, committed] = await Promise.all([
    admin.describe(options.inputs),
    admin.committed(options.group, tps),
  ])
  return Promise.all(
    described.map(async description => {
      const ofTopic = stored.filter(position => position.topic === description.topic)
      const mine = ofTopic.find(position => position.logId === description.logId) ?? null
      const group = committed.find(position => position.topic === description.topic)?.nextOffset ?? null
      const bounds = await admin.bounds({ topic: description.topic, partition })
      refuseChangedLog(options.stage, partition, description, ofTopic)
      refuseTruncatedLog(options.stage, partition, description.topic, {
        endOffset: bounds.endOffset,
        reached: Math.max(group ?? 0, mine?.emittedBelow ?? 0),
      })
      const { topic, logId } = description
      return { topic, logId, stored: mine, committed: group, startOffset: bounds.startOffset }
    }),
  )
}

function refuseChangedLog(
  stage: string,
  partition: number,
  now: TopicDescription,
  stored: readonly LogPosition[],
): void {
  const old = stored.find(position => position.logId !== now.logId)
  if (old === undefined || stored.some(position => position.logId === now.logId)) return
  throw new WeirError(
    'log_changed',
    `${stage} ${partition}: topic ${now.topic} is another log than before: it was log ${old.logId}, reached up to offset ` +
      `${old.emittedBelow}, and is log ${now.logId} now; follow docs/runbooks/changed-log.md`,
    { context: { stage, partition, topic: now.topic, storedLogId: old.logId, logId: now.logId } },
  )
}

function refuseTruncatedLog(
  stage: string,
  partition: number,
  topic: string,
  { endOffset, reached }: { readonly endOffset: number; readonly reached: number },
): void {
  if (reached <= endOffset) return
  throw new WeirError(
    'log_truncated',
    `${stage} ${partition}: topic ${topic} ends at offset ${endOffset}, but offset ${reached} was reached before; ` +
      'follow docs/runbooks/changed-log.md',
    { context: { stage, partition, topic, endOffset, reached } },
  )
}

/**
 * Either store may have gone back. The stage's own outputs, committed together with the offsets, say what was emitted: they raise
 * the start and re-create rows that Postgres lost. They are asked even when group offset and owner row agree: the row is stored with
 * the *next* claim, so an offset that went back by the last batch agrees with it, and that batch would be emitted again.
 */
async function recover(
  options: StageOptions,
  context: {
    readonly partition: number
    readonly inputs: readonly InputState[]
    readonly reader: LogReader
    readonly signal: AbortSignal
    readonly ownership: Ownership
  },
): Promise<ReadonlyMap<string, number>> {
  const { partition, inputs } = context
  const since = inputs.some(input => input.stored === null)
    ? null
    : Math.min(...inputs.map(input => input.stored?.claimedAtMs ?? 0))
  const found = await findOwnOutputs(options.broker, context.reader, {
    topics: options.ownOutputs,
    partition,
    sinceMs: since,
    wanted: inputs.map(input => ({ logId: input.logId, fromOffset: input.stored?.emittedBelow ?? 0 })),
    signal: context.signal,
  })
  for (const input of inputs) {
    const known = Math.max(input.stored?.emittedBelow ?? 0, found.emittedBelow.get(input.logId) ?? 0)
    if ((input.committed ?? 0) >= known) continue
    alarm(options, 'group_offset_lost', partition, {
      topic: input.topic,
      committed: input.committed,
      emittedBelow: known,
    })
  }
  if (found.records.length > 0) {
    const { restored } = await options.handler.rebuild(found.records, context.ownership)
    if (restored > 0) alarm(options, 'postgres_behind', partition, { restored })
  }
  return found.emittedBelow
}

function startOf(
  options: StageOptions,
  partition: number,
  input: InputState,
  recovered: ReadonlyMap<string, number>,
): LogPosition {
  const { topic, logId, stored, committed, startOffset } = input
  const reached = Math.max(committed ?? 0, stored?.emittedBelow ?? 0, recovered.get(logId) ?? 0)
  const isFresh = stored === null && committed === null && reached === 0
  if (startOffset > reached && !isFresh) {
    alarm(options, 'records_expired', partition, { topic, reached, startOffset })
  }
  return { topic, logId, emittedBelow: Math.max(reached, startOffset), claimedAtMs: stored?.claimedAtMs ?? 0 }
}

const alarmTexts: Record<StageAlarm, string> = {
  group_offset_lost: 'the group offset is missing or went back; own outputs and owner row say where to go on',
  postgres_behind: 'Postgres had lost rows of records that were emitted; they were re-created from own outputs',
  records_expired: 'records were removed from the input before they were read; compare with the sender',
  session_lost:
    'this instance was frozen or cut off past its session; others have taken over, and what it still does is fenced',
  halted: 'this partition is halted until an operator acts',
}

export function alarm(options: StageOptions, kind: StageAlarm, partition: number, fields: object): void {
  options.log.error({ ...fields, alarm: kind, stage: options.stage, partition }, alarmTexts[kind])
  options.observer?.alarm?.(kind, partition)
}
