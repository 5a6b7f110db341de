import { describe, expect, it } from 'vitest'
import { eventTimeMs } from './event-time.ts'

describe('an event time', () => {
  it('reads seconds and milliseconds', () => {
    expect(eventTimeMs('1700000000')).toBe(1_700_000_000_000)
    expect(eventTimeMs('1700000000000')).toBe(1_700_000_000_000)
    expect(eventTimeMs('1e400')).toBeNull()
  })
})
