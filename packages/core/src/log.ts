// The broker port: bytes only, no client types. packages/kafka implements it twice, on kafkajs and in memory.

/** One header: name and value bytes. Names may repeat; order is not kept by every client. */
export type Header = readonly [name: string, value: Buffer]

/** A record to be appended. The partition is always explicit: order depends on it. */
export interface OutRecord {
  readonly topic: string
  readonly partition: number
  readonly key: Buffer | null
  /** `null` is a tombstone; an event with empty data is an empty buffer, never null. */
  readonly value: Buffer | null
  readonly headers: readonly Header[]
}

/** A record as read from a log. */
export interface LogRecord {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  /** Broker's log-append time on audited topics, milliseconds since 1970. */
  readonly timestampMs: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: readonly Header[]
}

export interface TopicPartition {
  readonly topic: string
  readonly partition: number
}

/** Place in one log: the log id is the broker's topic id (UUID text). */
export interface Coordinate {
  readonly logId: string
  readonly partition: number
  readonly offset: number
}

/** A committed position: the offset of the next record to read. */
export interface Position extends TopicPartition {
  readonly nextOffset: number
}

/** What a fetch found. `nextOffset` covers control and aborted records that are not in `records`. */
export interface Fetched {
  readonly records: readonly LogRecord[]
  readonly startOffset: number
  readonly nextOffset: number
  readonly logStartOffset: number
  /** End of what a read-committed reader can see. */
  readonly lastStableOffset: number
  readonly highWatermark: number
}

export interface FetchRequest extends TopicPartition {
  readonly fromOffset: number
  /** Upper bound of the response, bytes; at least one batch is returned. Default 1 MiB. */
  readonly maxBytes?: number
  /** How long the broker may wait for data, milliseconds. Default 100. */
  readonly maxWaitMs?: number
}

/** Reads committed records of single partitions, without a group. */
export interface LogReader {
  /** Throws `log_out_of_range` when `fromOffset` is outside the log; never resets by itself. */
  fetch(request: FetchRequest): Promise<Fetched>
  close(): Promise<void>
}

export interface Ack extends TopicPartition {
  readonly offset: number
}

/** At-least-once publisher with linger, bounded queue and back-pressure; used where no input offset is involved. */
export interface Publisher {
  /** Resolves when all records are acknowledged by all in-sync replicas, in the order given. Throws `publisher_full`, `record_too_large` or `broker_unavailable`. */
  publish(records: readonly OutRecord[]): Promise<readonly Ack[]>
  close(): Promise<void>
}

/**
 * Result of one transaction: `committed`; `fenced`: another owner has this writer's transactional id;
 * `unknown`: it may or may not have been committed; `refused`: the broker refuses one of the records for good
 * (`topic` names the log that is missing or whose limit it breaks), nothing was committed.
 */
export type TransactionResult =
  | { readonly kind: 'committed' }
  | { readonly kind: 'fenced' }
  | { readonly kind: 'unknown'; readonly cause: unknown }
  | {
      readonly kind: 'refused'
      readonly topic: string
      readonly code: 'record_too_large' | 'topic_missing' | 'topic_denied'
      readonly cause: unknown
    }

/** The transactional writer of one (stage, partition number). After anything but `committed` it is dead: open a new one. */
export interface PartitionWriter {
  /** Outputs and input positions in one transaction. */
  run(batch: {
    readonly records: readonly OutRecord[]
    readonly positions: readonly Position[]
  }): Promise<TransactionResult>
  close(): Promise<void>
}

export interface Assignment {
  /** Partition numbers this member owns, of all the group's topics alike. */
  readonly numbers: readonly number[]
  readonly generation: number
}

/** Membership of a consumer group: only says who owns which partition number. Reading and committing go elsewhere. */
export interface Membership {
  /** Resolves when the member has shown the coordinator after this call that it is still one; throws `membership_lost` otherwise. */
  prove(): Promise<void>
  leave(): Promise<void>
}

export interface JoinRequest {
  readonly group: string
  readonly topics: readonly string[]
  /** Called with each new assignment; kept numbers keep working. */
  readonly onAssigned: (assignment: Assignment) => void
  /** The member has left or was thrown out for good. */
  readonly onLost: (cause: unknown) => void
  readonly sessionTimeoutMs?: number
}

export interface TopicDescription {
  readonly topic: string
  readonly logId: string
  readonly partitions: number
}

export interface BrokerAdmin {
  /** Throws `topic_missing`. */
  describe(topics: readonly string[]): Promise<readonly TopicDescription[]>
  /** First and end offset (high watermark) of one partition. */
  bounds(tp: TopicPartition): Promise<{ readonly startOffset: number; readonly endOffset: number }>
  /** First offset whose timestamp is at least `timestampMs`; the end when there is none. */
  offsetAt(tp: TopicPartition, timestampMs: number): Promise<number>
  /** Group offsets; a partition without one is absent from the answer. */
  committed(group: string, tps: readonly TopicPartition[]): Promise<readonly Position[]>
}

/** The broker as the services see it. */
export interface Broker {
  readonly admin: BrokerAdmin
  openReader(): Promise<LogReader>
  openPublisher(options?: PublisherOptions): Promise<Publisher>
  /** Fences the last owner of the transactional id, waits out its transaction, then resolves. */
  openWriter(options: WriterOptions): Promise<PartitionWriter>
  join(request: JoinRequest): Promise<Membership>
  close(): Promise<void>
}

export interface WriterOptions {
  readonly transactionalId: string
  /** Consumer group whose offsets the transactions move. */
  readonly group: string
  /** Called in each transaction between its last request and the commit: kill tests end the process there. */
  readonly beforeCommit?: () => void
}

export interface PublisherOptions {
  /** How long a record may wait for company, milliseconds. Default 3. */
  readonly lingerMs?: number
  /** Records waiting or in flight at most; more is `publisher_full`. Default 20,000. */
  readonly maxQueuedRecords?: number
  /** Bytes waiting or in flight at most. Default 64 MiB. */
  readonly maxQueuedBytes?: number
}
