import type { Clock } from '@weir/core'
import type { RawEvent } from '@weir/schemas'
import type { EventOutcome } from '../domain/answer.ts'
import { stormGate } from '../domain/storm.ts'
import type { IngestMetrics } from '../metrics.ts'
import type { EventLog, FaultPoint } from '../ports.ts'
import { publishFailure } from './publish-failure.ts'

export interface ProviderIntakeOptions {
  readonly log: EventLog
  readonly clock: Clock
  readonly metrics: IngestMetrics
  readonly faultPoint: FaultPoint
  /** Deliveries of one key and second that get a record each; more are counted. */
  readonly stormThreshold: number
  /** How long a count stays open, milliseconds. */
  readonly stormLingerMs: number
}

export interface ProviderIntake {
  /** Writes a verified delivery, repeats too: dedup decides. Resolves after the record that holds or counts it is acknowledged. Never rejects. */
  readonly deliver: (event: RawEvent) => Promise<EventOutcome>
}

interface Group {
  copies: number
  readonly outcome: Promise<EventOutcome>
}

export function createProviderIntake(options: ProviderIntakeOptions): ProviderIntake {
  const { log, clock, metrics, faultPoint, stormThreshold, stormLingerMs } = options
  const gate = stormGate(stormThreshold)
  const groups = new Map<string, Group>()

  const write = async (event: RawEvent): Promise<EventOutcome> => {
    try {
      await log.append(event)
    } catch (error) {
      return publishFailure(error, metrics)
    }
    faultPoint('ingest.after-publish')
    return { kind: 'accepted', deliveryId: event.deliveryId }
  }
  return {
    deliver: async event => {
      const key = event.eventKey.toString('latin1')
      if (gate.admits(key, clock.nowMs())) return await write(event)
      metrics.counted.inc({ source: event.source })
      // Copies with another body are not the same record.
      const groupKey = key + event.payloadDigest.toString('latin1')
      const open = groups.get(groupKey)
      if (open !== undefined) {
        open.copies++
        return await open.outcome
      }
      const outcome = lingerThen(stormLingerMs, async () => {
        const { copies } = groups.get(groupKey) ?? { copies: 1 }
        groups.delete(groupKey)
        return await write({ ...event, copies })
      })
      groups.set(groupKey, { copies: 1, outcome })
      return await outcome
    },
  }
}

async function lingerThen<T>(lingerMs: number, work: () => Promise<T>): Promise<T> {
  await new Promise<void>(resolve => {
    setTimeout(resolve, lingerMs)
  })
  return await work()
}
