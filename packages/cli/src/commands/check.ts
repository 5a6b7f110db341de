import type { Command } from 'commander'
import { runChecks, type CheckResult } from '../checks.ts'
import { exitCodes } from '../exit-codes.ts'

/** `weir check`: everything that needs no service, in under a minute. */
export function register(program: Command): void {
  program
    .command('check')
    .description(
      'Format, types, lint, import rule, dead code, generated files and unit tests. Run it before each commit.',
    )
    .option('--json', 'print the results as one JSON object')
    .addHelpText('after', '\nExample: weir check')
    .action(async (options: { readonly json?: boolean }) => {
      const results: CheckResult[] = []
      const report = (result: CheckResult): void => {
        results.push(result)
        process.stderr.write(checkLine(result))
      }
      const ok = await runChecks(report, { signal: new AbortController().signal })
      if (options.json === true) {
        console.log(
          JSON.stringify({
            ok,
            checks: results.map(({ name, ok: passed, seconds }) => ({ name, ok: passed, seconds })),
          }),
        )
      }
      process.exitCode = ok ? exitCodes.ok : exitCodes.failed
    })
}

export function checkLine(result: CheckResult): string {
  const line = `${result.ok ? 'ok    ' : 'FAILED'}  ${result.name} (${result.seconds.toFixed(1)} s)\n`
  return result.ok ? line : `${line}${result.output}\n`
}
