import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { WeirError } from '@weir/core'
import type { Command } from 'commander'
import { stateDirOf } from '../paths.ts'

interface Options {
  readonly lines: string
  readonly follow?: boolean
}

/** `weir logs`: the last lines of the processes' logs. */
export function register(program: Command): void {
  program
    .command('logs')
    .description('Print the last lines of the logs of what `weir up` started.')
    .argument('[name]', 'one process, for example dedup or kafka')
    .option('-n, --lines <n>', 'lines per process', '20')
    .option('-f, --follow', 'go on with new lines as they come; Ctrl-C ends it')
    .addHelpText('after', '\nExample: weir logs dedup -n 100 --follow')
    .action(async (name: string | undefined, options: Options) => {
      const files = logFiles(name)
      const ends = files.map(file => print(file, lineCount(options.lines)))
      if (options.follow === true) await follow(files, ends)
    })
}

function lineCount(text: string): number {
  const count = Number(text)
  if (Number.isSafeInteger(count) && count >= 1) return count
  throw new WeirError('invalid_value', `--lines ${text}: give a whole number of at least 1`)
}

function logFiles(name: string | undefined): readonly string[] {
  const stateDir = stateDirOf('up')
  const files = [join(stateDir, 'logs'), join(stateDir, 'services', 'logs')]
    .filter(existsSync)
    .flatMap(folder => readdirSync(folder).map(file => join(folder, file)))
  const wanted = files.filter(file => name === undefined || processOf(file) === name)
  if (wanted.length > 0) return wanted
  if (files.length === 0) throw new WeirError('not_found', 'there are no logs yet; start with: weir up')
  throw new WeirError('not_found', `there is no log of ${name ?? ''}; there are: ${files.map(processOf).join(', ')}`)
}

const processOf = (file: string): string => basename(file, '.log')

/** Prints the last lines; returns how far it has read. */
function print(file: string, lines: number): number {
  const bytes = readFileSync(file)
  console.log(`==> ${processOf(file)}`)
  console.log(bytes.toString('utf8').trimEnd().split('\n').slice(-lines).join('\n'))
  return bytes.length
}

async function follow(files: readonly string[], ends: number[]): Promise<never> {
  let last = ''
  for (;;) {
    for (const [i, file] of files.entries()) {
      const text = readFrom(file, ends[i] ?? 0)
      ends[i] = (ends[i] ?? 0) + Buffer.byteLength(text)
      if (text === '') continue
      if (files.length > 1 && last !== file) console.log(`==> ${processOf(file)}`)
      last = file
      process.stdout.write(text)
    }
    await delay(300)
  }
}

/** The whole lines from there on: a line that is still being written waits for its end. */
function readFrom(file: string, position: number): string {
  const size = statSync(file).size - position
  if (size <= 0) return ''
  const descriptor = openSync(file, 'r')
  try {
    const bytes = Buffer.alloc(Math.min(size, 1024 * 1024))
    const read = readSync(descriptor, bytes, 0, bytes.length, position)
    return bytes.toString('utf8', 0, bytes.subarray(0, read).lastIndexOf(0x0a) + 1)
  } finally {
    closeSync(descriptor)
  }
}
