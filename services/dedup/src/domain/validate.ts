import { eventKey, isUuid, sha256, textFault, uuidPattern } from '@weir/core'
import type { RawEvent } from '@weir/schemas'

/** Longest texts a record may carry, bytes. The edge keeps well below; a foreign producer may not. */
const maxTextBytes = { name: 128, id: 1024, keyText: 1024, field: 1024 } as const

/** Why a decoded event cannot be judged, or null. Names the field and what is wrong with it. */
export function eventFault(event: RawEvent): string | null {
  return textsFault(event) ?? identityFault(event)
}

function textsFault(event: RawEvent): string | null {
  const required: [string, string, number][] = [
    ['tenant', event.tenant, maxTextBytes.name],
    ['source', event.source, maxTextBytes.name],
    ['eventId', event.eventId, maxTextBytes.id],
    ['eventKeyText', event.eventKeyText, maxTextBytes.keyText],
    ['orderingKey', event.orderingKey, maxTextBytes.keyText],
    ['type', event.type, maxTextBytes.field],
  ]
  const optional: [string, string | null, number][] = [
    ['subject', event.subject, maxTextBytes.field],
    ['object', event.object, maxTextBytes.field],
    ['version', event.version, maxTextBytes.field],
    ['run', event.run, maxTextBytes.field],
    ['rootEvent', event.rootEvent, maxTextBytes.field],
    ['cause', event.cause, maxTextBytes.field],
    ['businessKey.space', event.businessKey?.space ?? null, maxTextBytes.name],
    ['businessKey.value', event.businessKey?.value ?? null, maxTextBytes.field],
  ]
  for (const [name, text, maxBytes] of [...required, ...optional]) {
    const fault = text === null ? null : textFault(text, maxBytes)
    if (fault !== null) return `${name} is ${fault}`
  }
  return null
}

function identityFault(event: RawEvent): string | null {
  if (!isUuid(event.deliveryId)) return `deliveryId is not a UUID in lower case (${uuidPattern.source})`
  if (!eventKey(event.tenant, event.source, event.eventId).equals(event.eventKey)) {
    return 'eventKey is not the SHA-256 of the length-prefixed tenant, source and eventId'
  }
  if (!sha256(event.data).equals(event.payloadDigest)) return 'payloadDigest is not the SHA-256 of data'
  if (!Number.isInteger(event.copies) || event.copies < 1) return `copies is ${event.copies}, not at least 1`
  return null
}
