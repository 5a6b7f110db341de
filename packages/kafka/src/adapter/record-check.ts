import type { OutRecord } from '@weir/core'
import { batchOverheadBytes, recordBytes } from './record-size.ts'
import type { TopicAnswer, TopicDirectory } from './topic-directory.ts'

/** Why the broker would refuse a record for good. */
export interface Refusal {
  readonly topic: string
  readonly code: 'record_too_large' | 'topic_missing' | 'topic_denied'
  readonly detail: string
}

/** What is known of each topic of these records; no promise when it is at hand. */
export function answersFor(
  directory: TopicDirectory,
  records: readonly OutRecord[],
): ReadonlyMap<string, TopicAnswer> | Promise<ReadonlyMap<string, TopicAnswer>> {
  const topics = new Set<string>()
  for (const { topic } of records) topics.add(topic)
  return directory.cached(topics) ?? directory.facts(topics)
}

/** The first record that cannot be appended, or null. Size is checked here because a refusal by the broker ends the producer. */
export function findRefusal(records: readonly OutRecord[], answers: ReadonlyMap<string, TopicAnswer>): Refusal | null {
  for (const record of records) {
    const refusal = refusalOf(record, answers.get(record.topic))
    if (refusal) return refusal
  }
  return null
}

function refusalOf(record: OutRecord, answer: TopicAnswer | undefined): Refusal | null {
  const { topic, partition } = record
  if (!answer || 'missing' in answer) {
    const code = answer?.missing ?? 'topic_missing'
    const detail =
      code === 'topic_denied' ? `writing to topic ${topic} is not allowed` : `topic ${topic} is not on the broker`
    return { topic, code, detail }
  }
  if (!(partition >= 0 && partition < answer.partitions)) {
    return {
      topic,
      code: 'topic_missing',
      detail: `topic ${topic} has ${answer.partitions} partitions, not ${partition}`,
    }
  }
  const bytes = recordBytes(record) + batchOverheadBytes
  if (bytes <= answer.maxBatchBytes) return null
  const detail = `a record of ${bytes} bytes is larger than max.message.bytes of ${topic}, ${answer.maxBatchBytes}`
  return { topic, code: 'record_too_large', detail }
}
