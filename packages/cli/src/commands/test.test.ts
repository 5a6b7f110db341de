import { describe, expect, it } from 'vitest'
import { countFailed } from './test.ts'

const counts = (failed: number) => ({ passed: 10, failed, skipped: 0 })
const failures = (...names: string[]) => names.map(name => ({ name }))

describe('what counts as failed', () => {
  it('is nothing when all is well', () => {
    expect(countFailed(counts(0), [])).toBe(0)
  })

  it('is each failed test and each failed check', () => {
    expect(countFailed(counts(3), failures('unit tests', 'lint', 'types'))).toBe(5)
  })

  it('is at least one for a test run that broke before it counted anything', () => {
    expect(countFailed(counts(0), failures('e2e tests'))).toBe(1)
  })
})
