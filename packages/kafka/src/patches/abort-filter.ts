// Replaces kafkajs `src/consumer/filterAbortedMessages.js`, which lets records of aborted transactions through: it takes the
// broker's list as sorted by first offset (it is in order of completion), opens at most one transaction per record, and takes
// any key of four zero bytes for an abort marker.

interface FetchedMessage {
  readonly offset: string
  readonly key: Buffer | null
  readonly isControlRecord: boolean
  readonly batchContext: { readonly producerId: string; readonly inTransaction: boolean }
}

interface AbortedTransaction {
  readonly producerId: string
  readonly firstOffset: string
}

/** Type field of an end-of-transaction marker's key: version int16, type int16; 0 is abort, 1 is commit. */
const abortType = 0

function isAbortMarker(message: FetchedMessage): boolean {
  return message.isControlRecord && message.key?.length === 4 && message.key.readInt16BE(2) === abortType
}

/** Drops the records that belong to a transaction of the broker's abort list; keeps control records for the caller to drop. */
export function filterAbortedMessages<Message extends FetchedMessage>(input: {
  readonly messages: Message[]
  readonly abortedTransactions?: readonly AbortedTransaction[] | null
}): Message[] {
  const { messages, abortedTransactions } = input
  if (!abortedTransactions || abortedTransactions.length === 0) return messages
  const waiting = abortedTransactions
    .map(({ producerId, firstOffset }) => ({ producerId, firstOffset: Number(firstOffset) }))
    .sort((a, b) => a.firstOffset - b.firstOffset)
  const open = new Set<string>()
  let next = 0
  return messages.filter(message => {
    const offset = Number(message.offset)
    for (let entry = waiting[next]; entry && entry.firstOffset <= offset; entry = waiting[++next]) {
      open.add(entry.producerId)
    }
    const { producerId, inTransaction } = message.batchContext
    if (isAbortMarker(message)) {
      open.delete(producerId)
      return true
    }
    return !(inTransaction && !message.isControlRecord && open.has(producerId))
  })
}
