import type { Metrics } from '@weir/runtime'

/** All metrics of ingest. Labels hold configured names and catalogue codes only, never anything a sender chooses. */
export function createIngestMetrics(metrics: Metrics) {
  return {
    answers: metrics.counter('ingest_answers_total', 'Answers given, by who asked, source or client, and code.', [
      'caller',
      'source',
      'code',
    ]),
    refusals: metrics.counter('ingest_signature_refusals_total', 'Deliveries that did not verify, by cause.', [
      'source',
      'reason',
    ]),
    verified: metrics.counter('ingest_verified_total', 'Deliveries verified, by the secret that matched.', [
      'source',
      'credential',
    ]),
    unparsable: metrics.counter('ingest_unparsable_total', 'Verified deliveries whose body or id cannot be read.', [
      'source',
      'fault',
    ]),
    counted: metrics.counter(
      'ingest_storm_counted_total',
      'Repeats written as a count instead of a record of their own.',
      ['source'],
    ),
    requestSeconds: metrics.histogram('ingest_request_seconds', 'From the end of the headers to the answer.', [
      'caller',
    ]),
    inFlight: metrics.gauge('ingest_requests_in_flight', 'Requests being read or answered.'),
    publishFailures: metrics.counter('ingest_publish_failures_total', 'Events that could not be appended, by code.', [
      'code',
    ]),
    edgeClaims: metrics.counter('ingest_edge_claims_total', 'Edge claims of API clients, by result.', ['result']),
    edgeFailures: metrics.counter('ingest_edge_failures_total', 'Calls to the edge claims that failed.', ['operation']),
    edgeBatch: metrics.histogram(
      'ingest_edge_batch_events',
      'Events per call to the edge claims.',
      [],
      [1, 5, 20, 100, 500],
    ),
    edgeExpired: metrics.counter('ingest_edge_expired_total', 'Edge claims deleted because their time was over.'),
    cacheReads: metrics.counter('ingest_edge_cache_reads_total', 'Look-ups in the edge cache.', ['result']),
    cacheErrors: metrics.counter('ingest_edge_cache_errors_total', 'Calls to the edge cache that failed.', [
      'operation',
    ]),
    receiptsQueued: metrics.gauge('ingest_receipts_queued', 'Receipts waiting to be written.'),
    receiptsCounted: metrics.counter('ingest_receipts_counted_total', 'Answers that share a receipt with others.'),
    receiptsDropped: metrics.counter(
      'ingest_receipts_dropped_total',
      'Answers that left no receipt, because Kafka was away too long.',
    ),
    receiptFailures: metrics.counter(
      'ingest_receipt_failures_total',
      'Attempts to write receipts that failed, by code.',
      ['code'],
    ),
  }
}

export type IngestMetrics = ReturnType<typeof createIngestMetrics>
