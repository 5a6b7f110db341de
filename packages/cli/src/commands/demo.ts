import type { Command } from 'commander'
import { ownedRun } from '../owned-run.ts'
import { stateDirOf } from '../paths.ts'

/** `weir demo`: the main job on real input, with an exact ledger. */
export function register(program: Command): void {
  program
    .command('demo')
    .description(
      'Start everything, run the main job on real payloads while killing services, and show what came of it.',
    )
    .option('--json', 'print the result as one JSON object on the last line')
    .addHelpText('after', '\nExit code 1 when an event was lost, doubled or overtaken, or any sum does not balance.')
    .action(async (options: { readonly json?: boolean }) => {
      process.exitCode = await ownedRun(stateDirOf('demo'), async run => {
        // Loaded only here: the vendors' packages are large.
        const { runDemo } = await import('../demo/run-demo.ts')
        return await runDemo(run, options.json === true)
      })
    })
}
