import { isUuid, textFault } from '@weir/core'
import type { Outcome, RawEvent, Release } from '@weir/schemas'

const maxTextBytes = 1024

/** Why an event cannot be judged, or null. One hostile value must not fail a whole batch in Postgres. */
export function eventFault(event: RawEvent): string | null {
  const required = {
    tenant: event.tenant,
    source: event.source,
    eventKeyText: event.eventKeyText,
    orderingKey: event.orderingKey,
    type: event.type,
  }
  const optional = {
    subject: event.subject,
    object: event.object,
    version: event.version,
    run: event.run,
    rootEvent: event.rootEvent,
    cause: event.cause,
  }
  for (const [name, text] of [...Object.entries(required), ...Object.entries(optional)]) {
    const fault = text === null ? null : textFault(text, maxTextBytes)
    if (fault !== null) return `${name} is ${fault}`
  }
  if (event.eventKey.length !== 32) return `eventKey has ${event.eventKey.length} bytes, not 32`
  if (!isUuid(event.deliveryId)) return 'deliveryId is not a UUID in lower case'
  return null
}

/** Why a release cannot be judged, or null. */
export function releaseFault(release: Release): string | null {
  if (!isUuid(release.decisionId)) return 'decisionId is not a UUID in lower case'
  if (!isUuid(release.admissionId)) return 'admissionId is not a UUID in lower case'
  if (!isUuid(release.input.logId)) return 'input.logId is not a UUID in lower case'
  if (!Number.isInteger(release.attempt) || release.attempt < 1) return `attempt is ${release.attempt}, not at least 1`
  if (textFault(release.agent, 128) !== null) return 'agent is not an agent name'
  return null
}

const maxDetailBytes = 2_048

/** Why a report cannot be settled, or null. */
export function outcomeFault(outcome: Outcome): string | null {
  const { decisionId, attempt, status, effects, detail, eventKey } = outcome
  if (!isUuid(decisionId)) return 'decisionId is not a UUID in lower case'
  if (!Number.isInteger(attempt) || attempt < 0) return `attempt is ${attempt}, not at least 0`
  if (!['completed', 'failed', 'no_report'].includes(status)) return 'status is neither completed nor failed'
  if (status === 'failed' && !['none', 'unknown', 'done'].includes(effects)) {
    return 'effects of a failure are none, unknown or done'
  }
  if (eventKey.length !== 32) return `eventKey has ${eventKey.length} bytes, not 32`
  const { tenant, agent, orderingKey, eventKeyText, run, rootEvent, cause } = outcome
  for (const [name, text] of Object.entries({ tenant, agent, orderingKey, eventKeyText, run, rootEvent, cause })) {
    const fault = text === null ? null : textFault(text, maxTextBytes)
    if (fault !== null) return `${name} is ${fault}`
  }
  const fault = detail === null || detail === '' ? null : textFault(detail, maxDetailBytes)
  return fault === null ? null : `detail is ${fault}`
}
