// For tests: connections that deliver a request and lose its answer.
import type { Socket } from 'node:net'
import type { ISocketFactory } from 'kafkajs'
import { openSocket } from '../adapter/client-settings.ts'

/** Keys of Kafka's requests. */
export const apiKey = {
  produce: 0,
  addOffsetsToTxn: 25,
  endTxn: 26,
  txnOffsetCommit: 28,
} as const

export interface FaultySockets {
  readonly factory: ISocketFactory
  /** Loses the next so many answers to this request; the connection breaks each time. */
  readonly lose: (key: number, count: number) => void
  /** How many answers were lost so far. */
  readonly lost: () => number
}

export function createFaultySockets(): FaultySockets {
  const left = new Map<number, number>()
  let lost = 0
  const takes = (key: number): boolean => {
    const count = left.get(key) ?? 0
    if (count <= 0) return false
    left.set(key, count - 1)
    lost++
    return true
  }
  return {
    factory: options => watch(openSocket(options) as Socket, takes) as ReturnType<ISocketFactory>,
    lose: (key, count) => void left.set(key, count),
    lost: () => lost,
  }
}

/** Both directions are frames: size int32, then a request's key, version and correlation id, or an answer's correlation id. */
function watch(socket: Socket, takes: (key: number) => boolean): Socket {
  const keys = new Map<number, number>()
  const write = socket.write.bind(socket) as (bytes: Buffer, encoding: BufferEncoding) => boolean
  const on = socket.on.bind(socket) as (event: string, listener: (...args: never[]) => void) => Socket
  let pending = Buffer.alloc(0)
  const forward = (listener: (bytes: Buffer) => void) => (bytes: Buffer) => {
    pending = Buffer.concat([pending, bytes])
    while (pending.length >= 8 && pending.length >= 4 + pending.readInt32BE(0)) {
      const end = 4 + pending.readInt32BE(0)
      const frame = pending.subarray(0, end)
      pending = pending.subarray(end)
      const key = keys.get(frame.readInt32BE(4))
      keys.delete(frame.readInt32BE(4))
      if (key !== undefined && takes(key)) return void socket.destroy(new Error('the answer was lost'))
      listener(frame)
    }
  }
  return Object.assign(socket, {
    write: (bytes: Buffer, encoding: BufferEncoding) => {
      if (bytes.length >= 12) keys.set(bytes.readInt32BE(8), bytes.readInt16BE(4))
      return write(bytes, encoding)
    },
    on: (event: string, listener: (...args: never[]) => void) =>
      on(event, event === 'data' ? (forward(listener as never) as never) : listener),
  })
}
