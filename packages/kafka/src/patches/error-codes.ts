// Adds to kafkajs `src/protocol/error.js` the codes Kafka got after 2.2.4: without them a fenced producer (90) is an "unknown
// error" that nobody can tell from others.

export interface ProtocolErrorCode {
  readonly type: string
  readonly code: number
  readonly retriable: boolean
  readonly message: string
}

const added: readonly ProtocolErrorCode[] = [
  { type: 'THROTTLING_QUOTA_EXCEEDED', code: 89, retriable: true, message: 'The throttling quota has been exceeded' },
  { type: 'PRODUCER_FENCED', code: 90, retriable: false, message: 'There is a newer producer with the same id' },
  { type: 'RESOURCE_NOT_FOUND', code: 91, retriable: false, message: 'A request named a resource that is not there' },
  { type: 'UNKNOWN_TOPIC_ID', code: 100, retriable: true, message: 'This server does not host this topic id' },
  { type: 'INCONSISTENT_TOPIC_ID', code: 103, retriable: true, message: 'The topic id is not the one in the log' },
  { type: 'TRANSACTION_ABORTABLE', code: 120, retriable: false, message: 'The transaction must be aborted' },
]

export function addErrorCodes(known: ProtocolErrorCode[]): void {
  for (const entry of added) {
    if (!known.some(({ code }) => code === entry.code)) known.push(entry)
  }
}
