import { appendFileSync } from 'node:fs'
import type { Reporter, TestModule } from 'vitest/node'

/** Adds the counts of one vitest run, as a line of JSON, to the file named by WEIR_TEST_COUNTS. */
export default class CountReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const counts = { passed: 0, failed: errors.length, skipped: 0, pending: 0 }
    for (const module of modules) {
      counts.failed += module.errors().length
      for (const test of module.children.allTests()) counts[test.result().state] += 1
    }
    const file = process.env['WEIR_TEST_COUNTS']
    if (file !== undefined) appendFileSync(file, `${JSON.stringify(counts)}\n`)
  }
}
