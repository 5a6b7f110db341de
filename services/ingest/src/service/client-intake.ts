import { WeirError } from '@weir/core'
import type { RawEvent } from '@weir/schemas'
import type { EventOutcome } from '../domain/answer.ts'
import type { ApiClient } from '../domain/client-event.ts'
import type { IngestMetrics } from '../metrics.ts'
import type {
  Acceptance,
  AcceptRequest,
  AcceptAnswer,
  ClaimAnswer,
  ClaimRequest,
  EdgeCache,
  EdgeClaims,
  EventLog,
  FaultPoint,
} from '../ports.ts'
import { createMicroBatcher } from './micro-batcher.ts'
import { publishFailure } from './publish-failure.ts'

export interface ClientIntakeOptions {
  readonly log: EventLog
  readonly claims: EdgeClaims
  readonly cache: EdgeCache
  readonly metrics: IngestMetrics
  readonly faultPoint: FaultPoint
  /** How long the first of a batch of edge calls waits for company, milliseconds. */
  readonly lingerMs: number
  /** How long a request waits for another one of the same key in this process, milliseconds. */
  readonly waitMs: number
}

export interface Submission {
  readonly client: ApiClient
  /** With the delivery id it gets if no earlier holder of the key has one. */
  readonly event: RawEvent
  readonly digest: Buffer
}

export interface ClientIntake {
  /** Claims, publishes, and accepts. Exactly one submission of a key is `accepted`; the others get its delivery id. */
  readonly submit: (submission: Submission) => Promise<EventOutcome>
}

/** What became of a key, before it is compared with what a request sent. */
type KeyState =
  | { readonly kind: 'accepted_now' | 'accepted_before'; readonly acceptance: Acceptance }
  | { readonly kind: 'other'; readonly outcome: EventOutcome }

interface Flight {
  deliveryId: string
  readonly state: Promise<KeyState>
}

const batchLimits = { maxBatch: 500, maxQueued: 20_000, maxRunning: 4 }
const retryAfterSeconds = 2

export function createClientIntake(options: ClientIntakeOptions): ClientIntake {
  const { metrics, waitMs } = options
  /** Keys being settled by this process: a second request waits for the first instead of asking the stores. */
  const flights = new Map<string, Flight>()
  const lead = createLead(options)
  return {
    submit: async submission => {
      const key = submission.event.eventKey.toString('latin1')
      const open = flights.get(key)
      if (open !== undefined) return await follow(open, submission, waitMs)
      const flight: Flight = {
        deliveryId: submission.event.deliveryId,
        state: withoutStoreErrors(
          lead(submission, deliveryId => {
            flight.deliveryId = deliveryId
          }),
          metrics,
        ),
      }
      flights.set(key, flight)
      try {
        const state = await flight.state
        return state.kind === 'accepted_now'
          ? { kind: 'accepted', deliveryId: state.acceptance.deliveryId }
          : outcomeFor(state, submission)
      } finally {
        flights.delete(key)
      }
    },
  }
}

type Lead = (submission: Submission, onClaimed: (deliveryId: string) => void) => Promise<KeyState>

/** The first request of a key in this process: claims it, publishes the event, marks it accepted. */
function createLead(options: ClientIntakeOptions): Lead {
  const { log, claims, cache, metrics, faultPoint, lingerMs } = options
  const claimed = createMicroBatcher<ClaimRequest, ClaimAnswer>({
    ...batchLimits,
    lingerMs,
    run: async requests => await claimBatch(options, requests),
  })
  const accepted = createMicroBatcher<AcceptRequest, AcceptAnswer>({
    ...batchLimits,
    lingerMs,
    run: async requests => await claims.accept(requests, log.logId()),
  })
  const released = createMicroBatcher<Pick<AcceptRequest, 'key' | 'deliveryId'>, true>({
    ...batchLimits,
    lingerMs,
    run: async requests => {
      await claims.release(requests)
      return requests.map(() => true)
    },
  })

  return async (submission, onClaimed) => {
    const { client, event, digest } = submission
    const [key, keepMs] = [event.eventKey, client.windowSeconds * 1000]
    const claim = await claimed.submit({ key, deliveryId: event.deliveryId, digest, keepMs })
    metrics.edgeClaims.inc({ result: claim.kind })
    if (claim.kind === 'accepted') return { kind: 'accepted_before', acceptance: claim }
    if (claim.kind === 'publishing') return inProgress(claim.deliveryId, claim.leaseLeftMs)

    const { deliveryId } = claim
    onClaimed(deliveryId)
    faultPoint('ingest.after-edge-claim')
    try {
      await log.append({ ...event, deliveryId })
    } catch (error) {
      await releaseQuietly(released.submit({ key, deliveryId }), metrics)
      return { kind: 'other', outcome: publishFailure(error, metrics) }
    }
    faultPoint('ingest.after-publish')
    const acceptance = { deliveryId, digest }
    const answer = await accepted.submit({ key, ...acceptance })
    if (answer.kind === 'publishing') return inProgress(answer.deliveryId, 1000)
    if (answer.kind === 'accepted') return { kind: 'accepted_before', acceptance: answer }
    cache.write(key, acceptance, { logId: log.logId(), ttlMs: keepMs })
    return { kind: 'accepted_now', acceptance }
  }
}

/** Cached acceptances first; what the cache does not know goes to the claims. */
async function claimBatch(
  options: ClientIntakeOptions,
  requests: readonly ClaimRequest[],
): Promise<readonly ClaimAnswer[]> {
  const { cache, claims, log, metrics } = options
  const logId = log.logId()
  metrics.edgeBatch.observe({}, requests.length)
  const known = await cache.read(
    requests.map(request => request.key),
    logId,
  )
  const misses = requests.filter((_, i) => known[i] == null)
  const answers = misses.length === 0 ? [] : await claims.claim(misses, logId)
  let next = 0
  return requests.map((request, i): ClaimAnswer => {
    const hit = known[i]
    if (hit != null) return { kind: 'accepted', ...hit }
    const answer = answers[next++]
    if (answer === undefined) {
      throw new WeirError('internal', `The edge claims gave ${answers.length} answers to ${misses.length} requests`)
    }
    if (answer.kind === 'accepted') {
      cache.write(request.key, answer, { logId, ttlMs: cacheRefreshMs })
    }
    return answer
  })
}

/** A row read back does not tell how long it has still to live, so its copy lives shortly. */
const cacheRefreshMs = 60_000

/** Best effort: a lease that is not released ends by itself. */
async function releaseQuietly(released: Promise<true>, metrics: IngestMetrics): Promise<void> {
  try {
    await released
  } catch (error) {
    if (!(error instanceof WeirError)) throw error
    metrics.edgeFailures.inc({ operation: 'release' })
  }
}

/** Waits for the request that settles the key, within bounds. */
async function follow(flight: Flight, submission: Submission, waitMs: number): Promise<EventOutcome> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<null>(resolve => {
    timer = setTimeout(() => resolve(null), waitMs)
  })
  try {
    const state = (await Promise.race([flight.state, timeout])) ?? inProgress(flight.deliveryId, 1000)
    return outcomeFor(state, submission)
  } finally {
    clearTimeout(timer)
  }
}

/** For every request but the one that was accepted now. */
function outcomeFor(state: KeyState, { client, digest }: Submission): EventOutcome {
  if (state.kind === 'other') return state.outcome
  const { acceptance } = state
  if (!acceptance.digest.equals(digest)) {
    return { kind: 'payload_mismatch', originalDeliveryId: acceptance.deliveryId }
  }
  return client.onDuplicate === 'replay'
    ? { kind: 'replayed', deliveryId: acceptance.deliveryId }
    : { kind: 'duplicate', originalDeliveryId: acceptance.deliveryId }
}

function inProgress(deliveryId: string, retryAfterMs: number): KeyState {
  return {
    kind: 'other',
    outcome: { kind: 'in_progress', originalDeliveryId: deliveryId, retryAfterSeconds: retryAfterMs / 1000 },
  }
}

/** A store that is away makes the event unavailable; a bug stays an error. */
async function withoutStoreErrors(state: Promise<KeyState>, metrics: IngestMetrics): Promise<KeyState> {
  try {
    return await state
  } catch (error) {
    if (!(error instanceof WeirError) || !error.retriable) throw error
    metrics.edgeFailures.inc({ operation: error.code })
    return { kind: 'other', outcome: { kind: 'unavailable', retryAfterSeconds } }
  }
}
