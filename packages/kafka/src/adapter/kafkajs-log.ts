import type { Log } from '@weir/core'
import type { logCreator } from 'kafkajs'

/** kafkajs' WARN: below it, it would build a log entry for every request and response. */
export const logLevel = 2
const kafkajsError = 1

/**
 * Sends kafkajs' log to ours, at debug: whatever it calls an error is also thrown to the adapter, which retries, maps and reports
 * it. Left at its own level, each rebalance and each CONCURRENT_TRANSACTIONS answer would be an error.
 */
export function kafkajsLogCreator(log: Log): logCreator {
  return () => entry => {
    const { message, logger: _logger, timestamp: _timestamp, ...fields } = entry.log
    const kafkajsLevel = entry.level === kafkajsError ? 'error' : 'warn'
    log.debug({ ...fields, namespace: entry.namespace, kafkajsLevel, detail: message }, 'kafkajs')
  }
}
