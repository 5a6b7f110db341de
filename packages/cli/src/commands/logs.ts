import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { WeirError } from '@weir/core'
import type { Command } from 'commander'
import { stateDirOf } from '../paths.ts'

/** `weir logs`: the last lines of the processes' logs. */
export function register(program: Command): void {
  program
    .command('logs')
    .description('Print the last lines of the logs of what `weir up` started.')
    .argument('[name]', 'one process, for example dedup or kafka')
    .option('-n, --lines <n>', 'lines per process', '20')
    .addHelpText('after', '\nExample: weir logs dedup -n 100')
    .action((name: string | undefined, options: { readonly lines: string }) => print(name, options.lines))
}

function print(name: string | undefined, lines: string): void {
  const count = Number(lines)
  if (!Number.isSafeInteger(count) || count < 1) {
    throw new WeirError('invalid_value', `--lines ${lines}: give a whole number of at least 1`)
  }
  const stateDir = stateDirOf('up')
  const files = [join(stateDir, 'logs'), join(stateDir, 'services', 'logs')]
    .filter(existsSync)
    .flatMap(folder => readdirSync(folder).map(file => join(folder, file)))
  const wanted = files.filter(file => name === undefined || basename(file, '.log') === name)
  if (wanted.length === 0) {
    const known = files.map(file => basename(file, '.log')).join(', ')
    throw new WeirError(
      'not_found',
      known === ''
        ? 'there are no logs yet; start with: weir up'
        : `there is no log of ${name ?? ''}; there are: ${known}`,
    )
  }
  for (const file of wanted) {
    console.log(`==> ${basename(file, '.log')}`)
    console.log(readFileSync(file, 'utf8').trimEnd().split('\n').slice(-count).join('\n'))
  }
}
