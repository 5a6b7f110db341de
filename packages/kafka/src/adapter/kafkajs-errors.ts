// Foreign errors are converted here, once. What kafkajs throws is usually wrapped: the type stands on a cause further down.
import { WeirError } from '@weir/core'

interface ForeignError {
  readonly name?: unknown
  readonly type?: unknown
  readonly code?: unknown
  readonly cause?: unknown
}

const deepestCause = 10

function causes(error: unknown): ForeignError[] {
  const found: ForeignError[] = []
  let current: unknown = error
  while (typeof current === 'object' && current !== null && found.length < deepestCause) {
    found.push(current)
    current = (current as ForeignError).cause
  }
  return found
}

/** Kafka's name of the error (`NOT_LEADER_FOR_PARTITION`), or null when it is not one of the protocol. */
export function protocolType(error: unknown): string | null {
  for (const { type } of causes(error)) if (typeof type === 'string') return type
  return null
}

/** Whether the error, or one it wraps, has this class name. */
export function isNamed(error: unknown, name: string): boolean {
  return causes(error).some(cause => cause.name === name)
}

/** The coordinator has a newer producer with this transactional id, or has timed out this one's transaction. */
export function isFenced(error: unknown): boolean {
  return fencedTypes.has(protocolType(error) ?? '')
}
const fencedTypes = new Set(['INVALID_PRODUCER_EPOCH', 'PRODUCER_FENCED'])

export function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Keeps a WeirError as it is; everything else becomes `broker_unavailable`, which a later try can cure. */
export function brokerError(doing: string, error: unknown, context: Readonly<Record<string, unknown>> = {}): WeirError {
  if (error instanceof WeirError) return error
  const type = protocolType(error)
  return new WeirError('broker_unavailable', `Kafka did not ${doing}: ${type ? `${type}, ` : ''}${textOf(error)}`, {
    cause: error,
    context: type ? { ...context, type } : context,
  })
}
