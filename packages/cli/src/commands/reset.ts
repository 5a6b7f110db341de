import { dropStack } from '@weir/ops'
import type { Command } from 'commander'
import { ownedRun } from '../owned-run.ts'
import { stateDirOf } from '../paths.ts'
import { stopUp } from './down.ts'

/** `weir reset`: ends what runs and throws its data away. */
export function register(program: Command): void {
  program
    .command('reset')
    .description('Stop everything and throw away the data, logs and secrets of `weir up`. Downloads are kept.')
    .addHelpText('after', '\nExample: weir reset && weir up')
    .action(async () => {
      process.exitCode = await ownedRun(stateDirOf('up'), async ({ stateDir }) => {
        await stopUp()
        await dropStack(stateDir)
        console.log('The data of `weir up` is gone.')
        return 0
      })
    })
}
