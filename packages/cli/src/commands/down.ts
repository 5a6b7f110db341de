import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { Supervisor } from '@weir/ops'
import type { Command } from 'commander'
import { stateDirOf } from '../paths.ts'

/** `weir down`: ends what `weir up` left running. */
export function register(program: Command): void {
  program
    .command('down')
    .description('Stop everything that `weir up` started: first the services, then the stack.')
    .action(async () => {
      await stopUp()
      console.log('Weir is down.')
    })
}

export async function stopUp(): Promise<void> {
  const stateDir = stateDirOf('up')
  await new Supervisor(join(stateDir, 'services')).stopAll()
  await new Supervisor(stateDir).stopAll()
  rmSync(join(stateDir, 'system.json'), { force: true })
}
