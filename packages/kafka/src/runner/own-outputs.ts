import { inputHeader, type Broker, type Coordinate, type LogReader, type LogRecord } from '@weir/core'

/** Broker clocks may differ by this much after a leader moved; the search starts that much earlier. */
const clockMarginMs = 10_000

/** The input coordinate a stage's output carries, or null for a record of something else. */
export function inputOf(record: LogRecord): Coordinate | null {
  const header = record.headers.find(([name]) => name === inputHeader)
  if (header === undefined) return null
  const [logId, partition, offset] = header[1].toString('utf8').split(':')
  if (logId === undefined || partition === undefined || offset === undefined) return null
  const coordinate = { logId, partition: Number(partition), offset: Number(offset) }
  return Number.isSafeInteger(coordinate.partition) && Number.isSafeInteger(coordinate.offset) ? coordinate : null
}

/** From which offset of an input log own outputs are wanted. */
export interface WantedFrom {
  readonly logId: string
  readonly fromOffset: number
}

export interface OwnOutputs {
  /** Outputs whose input lies at or above the wanted offset of its log, in the order of their topics and logs. */
  readonly records: readonly LogRecord[]
  /** 1 + the highest input offset found, by input log. */
  readonly emittedBelow: ReadonlyMap<string, number>
}

/**
 * Reads the stage's own outputs of one partition number, from a time on (`null`: from the first record) up to the end as it is
 * now. Call it after the last owner was fenced: then no transaction of the stage is open, and what is found is what was emitted.
 */
export async function findOwnOutputs(
  broker: Broker,
  reader: LogReader,
  search: {
    readonly topics: readonly string[]
    readonly partition: number
    readonly sinceMs: number | null
    readonly wanted: readonly WantedFrom[]
    readonly signal: AbortSignal
  },
): Promise<OwnOutputs> {
  const from = new Map(search.wanted.map(w => [w.logId, w.fromOffset]))
  const records: LogRecord[] = []
  const emittedBelow = new Map<string, number>()
  for (const topic of search.topics) {
    const tp = { topic, partition: search.partition }
    const { startOffset, endOffset } = await broker.admin.bounds(tp)
    let next =
      search.sinceMs === null
        ? startOffset
        : Math.max(startOffset, await broker.admin.offsetAt(tp, Math.max(0, search.sinceMs - clockMarginMs)))
    while (next < endOffset) {
      search.signal.throwIfAborted()
      const fetched = await reader.fetch({ ...tp, fromOffset: next, maxWaitMs: 250 })
      next = fetched.nextOffset
      for (const record of fetched.records) {
        const input = inputOf(record)
        const wantedFrom = input === null ? undefined : from.get(input.logId)
        if (input === null || wantedFrom === undefined || input.offset < wantedFrom) continue
        emittedBelow.set(input.logId, Math.max(emittedBelow.get(input.logId) ?? 0, input.offset + 1))
        records.push(record)
      }
    }
  }
  return { records, emittedBelow }
}
