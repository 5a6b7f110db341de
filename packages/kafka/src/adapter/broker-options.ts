import type { Log } from '@weir/core'

/** How to reach the brokers. */
export interface BrokerOptions {
  /** Bootstrap addresses `host:port`; give at least three in production, since the client rotates through them. */
  readonly brokers: readonly string[]
  /** Name of this process in the broker's logs and quotas. */
  readonly clientId: string
  readonly log: Log
  /** How long one request may take, milliseconds. Default 10,000; must stay below the transaction time-out of 15,000. */
  readonly requestTimeoutMs?: number
  /** TLS with the system's certificate authorities. Default false. */
  readonly tls?: boolean
  readonly sasl?: {
    readonly mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'
    readonly username: string
    readonly password: string
  }
}

export const connectionTimeoutMs = 10_000
export const defaultRequestTimeoutMs = 10_000
/** How long a dead owner's transaction can hold back readers; above the request time-out, below the session time-out. */
export const transactionTimeoutMs = 15_000
