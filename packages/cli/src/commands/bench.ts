import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { WeirError } from '@weir/core'
import type { Command } from 'commander'
import { exitCodes } from '../exit-codes.ts'
import { ownedRun } from '../owned-run.ts'
import { checkout, stateDirOf } from '../paths.ts'

/** `weir bench`: a benchmark with an exact ledger beside its figures. */
export function register(program: Command): void {
  program
    .command('bench')
    .description(
      'Run a benchmark on a fresh local system; its last line is one JSON object. Exit code 1 when its ledger does not balance.',
    )
    .argument('<name>', 'pipeline.e2e')
    .option('--json', 'only for symmetry: the last line is always JSON')
    .addHelpText('after', '\nResults that balance are kept in bench/results/. Run it on a quiet machine.')
    .action(async (name: string) => {
      const file = join(checkout, 'bench', 'src', `${name.replaceAll('.', '-')}.ts`)
      if (!existsSync(file))
        throw new WeirError('invalid_value', `there is no benchmark ${name}; there is: pipeline.e2e`)
      process.exitCode = await ownedRun(stateDirOf('bench'), async run => {
        const child = spawn(process.execPath, [...process.execArgv, file], { cwd: checkout, stdio: 'inherit' })
        run.signal.addEventListener('abort', () => child.kill('SIGTERM'), { once: true })
        return await new Promise<number>(resolve => child.once('close', code => resolve(code ?? exitCodes.failed)))
      })
    })
}
