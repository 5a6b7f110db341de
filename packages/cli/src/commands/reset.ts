import { rmSync } from 'node:fs'
import type { Command } from 'commander'
import { stateDirOf } from '../paths.ts'
import { stopUp } from './down.ts'

/** `weir reset`: ends what runs and throws its data away. */
export function register(program: Command): void {
  program
    .command('reset')
    .description('Stop everything and throw away the data, logs and secrets of `weir up`. Downloads are kept.')
    .action(async () => {
      await stopUp()
      rmSync(stateDirOf('up'), { recursive: true, force: true })
      console.log('The data of `weir up` is gone.')
    })
}
