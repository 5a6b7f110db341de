import { rmSync } from 'node:fs'
import { startStack, stderrProgress, toolsDirOf } from '@weir/ops'
import { Option, type Command } from 'commander'
import { countsFile, readCounts, runCheck, runChecks, vitest, type CheckResult, type Counts } from '../checks.ts'
import { exitCodes } from '../exit-codes.ts'
import { ownedRun, type OwnedRun } from '../owned-run.ts'
import { checkout, stateDirOf } from '../paths.ts'
import { checkLine } from './check.ts'

interface Options {
  readonly only?: 'check' | 'integration' | 'e2e'
  readonly json?: boolean
}

/** `weir test`: every check and test, on real services that it starts itself. */
export function register(program: Command): void {
  program
    .command('test')
    .description(
      'Run the checks, then integration and end-to-end tests on real services. Ends with "N passed, N failed".',
    )
    .addOption(new Option('--only <part>', 'only this part').choices(['check', 'integration', 'e2e']))
    .option('--json', 'print the counts as one JSON object as well')
    .addHelpText(
      'after',
      '\nExample: weir test --only integration\nUses WEIR_KAFKA_BROKERS, WEIR_SCHEMA_REGISTRY_URL, DATABASE_URL and REDIS_URL where they are set.',
    )
    .action(async (options: Options) => {
      process.exitCode = await ownedRun(stateDirOf('test'), run => test(run, options))
    })
}

async function test(run: OwnedRun, options: Options): Promise<number> {
  const file = countsFile()
  const env = { WEIR_TEST_COUNTS: file }
  const { signal } = run
  const failures: CheckResult[] = []
  const note = (result: CheckResult): void => {
    if (!result.ok) failures.push(result)
    process.stderr.write(checkLine(result))
  }
  const wants = (part: string): boolean => options.only === undefined || options.only === part
  if (wants('check')) await runChecks(note, { signal, env })
  if (wants('integration') || wants('e2e')) {
    const stack = await startStack({
      stateDir: run.stateDir,
      toolsDir: toolsDirOf(checkout),
      env: process.env,
      progress: stderrProgress,
      signal,
    })
    run.onEnd(() => stack.stop())
    for (const project of ['integration', 'e2e'].filter(wants)) {
      const check = { name: `${project} tests`, command: vitest(project) }
      const print = (chunk: Buffer): void => void process.stderr.write(chunk)
      note(await runCheck(check, { signal, env: { ...env, ...stack.urls }, print }))
    }
  }
  signal.throwIfAborted()
  const counts = readCounts(file)
  rmSync(file, { force: true })
  const failed = countFailed(counts, failures)
  if (options.json === true) console.log(JSON.stringify({ ok: failed === 0, ...counts, failed }))
  console.log(`${counts.passed} passed, ${failed} failed`)
  return failed === 0 ? exitCodes.ok : exitCodes.failed
}

/** Failed tests, and each check that failed. A test run that broke before it counted must not read as success. */
export function countFailed(counts: Counts, failures: readonly Pick<CheckResult, 'name'>[]): number {
  const runs = failures.filter(({ name }) => name.endsWith('tests')).length
  return failures.length - runs + (runs > 0 ? Math.max(counts.failed, runs) : counts.failed)
}
