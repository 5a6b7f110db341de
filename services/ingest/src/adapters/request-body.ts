import type { IncomingMessage } from 'node:http'

export type ReadBody =
  | { readonly kind: 'body'; readonly bytes: Buffer }
  /** `isRead`: the rest was read and thrown away, so that the connection can go on. */
  | { readonly kind: 'too_large'; readonly sizeBytes: number; readonly isRead: boolean }
  /** The sender went away, or sent less than it said. */
  | { readonly kind: 'cut'; readonly sizeBytes: number }

/**
 * How much of a body beyond the limit is read and thrown away before the answer. A sender that is still sending when the
 * connection closes sees a reset instead of the answer.
 */
const maxDiscardBytes = 8 * 1_048_576

/** Reads a body as the bytes received, holding at most `limitBytes`. Never rejects. */
export async function readBody(request: IncomingMessage, limitBytes: number): Promise<ReadBody> {
  const chunks: Buffer[] = []
  let sizeBytes = 0
  return await new Promise<ReadBody>(resolve => {
    const done = (result: ReadBody): void => {
      request.off('data', onData)
      request.off('end', onEnd)
      request.off('close', onCut)
      request.off('error', onCut)
      // An error after the answer has nobody left to tell; without a listener it would end the process.
      request.on('error', () => undefined)
      resolve(result)
    }
    const onData = (chunk: Buffer): void => {
      sizeBytes += chunk.length
      if (sizeBytes <= limitBytes) chunks.push(chunk)
      else if (sizeBytes > limitBytes + maxDiscardBytes) done({ kind: 'too_large', sizeBytes, isRead: false })
      else chunks.length = 0
    }
    const onEnd = (): void => {
      if (sizeBytes > limitBytes) done({ kind: 'too_large', sizeBytes, isRead: true })
      else done({ kind: 'body', bytes: joined(chunks, sizeBytes) })
    }
    const onCut = (): void => done({ kind: 'cut', sizeBytes })
    const announced = Number(request.headers['content-length'] ?? 0)
    if (announced > limitBytes + maxDiscardBytes) {
      done({ kind: 'too_large', sizeBytes: 0, isRead: false })
      return
    }
    request.on('data', onData)
    request.on('end', onEnd)
    request.on('close', onCut)
    request.on('error', onCut)
  })
}

/** Always a copy of its own size, so that a small body does not hold the socket's buffer. */
function joined(chunks: readonly Buffer[], sizeBytes: number): Buffer {
  return Buffer.concat(chunks, sizeBytes)
}
