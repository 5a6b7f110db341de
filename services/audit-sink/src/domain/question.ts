import { isUuid, textFault, uuidPattern } from '@weir/core'
import { indexed } from './columns.ts'

/** What an analyst asks about: one column and the value in it. */
export interface Question {
  readonly column: 'event_key' | 'event_key_text' | 'delivery_id' | 'decision_id' | 'subject' | 'run'
  readonly value: string
}

export const questionNames = ['key', 'delivery', 'decision', 'subject', 'run'] as const
export type QuestionName = (typeof questionNames)[number]

const hexKey = /^[0-9a-f]{64}$/

/** The columns a value may stand in, in the order they are tried. An unnamed value can be any of them. */
export function questionsFor(
  name: QuestionName | 'any',
  value: string,
): readonly Question[] | { readonly fault: string } {
  const fault = textFault(value, 1_024)
  if (fault !== null) return { fault: `the value asked for is ${fault}` }
  const stored = indexed(value) ?? value
  const one = (column: Question['column']): Question => ({ column, value: column === 'event_key' ? value : stored })
  switch (name) {
    case 'key':
      return [hexKey.test(value) ? one('event_key') : one('event_key_text')]
    case 'delivery':
    case 'decision':
      if (!isUuid(value)) return { fault: `a ${name} id is a UUID in lower case (${uuidPattern.source})` }
      return [one(name === 'delivery' ? 'delivery_id' : 'decision_id')]
    case 'subject':
    case 'run':
      return [one(name)]
    case 'any':
      if (isUuid(value)) return [one('delivery_id'), one('decision_id'), one('run'), one('subject')]
      if (hexKey.test(value)) return [one('event_key')]
      return [one('event_key_text'), one('subject'), one('run')]
  }
}
