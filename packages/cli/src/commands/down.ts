import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { stopStack, Supervisor } from '@weir/ops'
import type { Command } from 'commander'
import { ownedRun } from '../owned-run.ts'
import { stateDirOf } from '../paths.ts'

/** `weir down`: ends what `weir up` left running. */
export function register(program: Command): void {
  program
    .command('down')
    .description('Stop everything that `weir up` started: first the services, then the stack. The data stays.')
    .addHelpText('after', '\nExample: weir down')
    .action(async () => {
      process.exitCode = await ownedRun(stateDirOf('up'), async () => {
        await stopUp()
        console.log('Weir is down. Its data is kept for the next `weir up`; `weir reset` throws it away.')
        return 0
      })
    })
}

export async function stopUp(): Promise<void> {
  const stateDir = stateDirOf('up')
  await new Supervisor(join(stateDir, 'services')).stopAll()
  await stopStack(stateDir)
  rmSync(join(stateDir, 'system.json'), { force: true })
}
