import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { errorCatalogue, WeirError } from '@weir/core'
import { Command, CommanderError } from 'commander'
import { register as bench } from './commands/bench.ts'
import { register as check } from './commands/check.ts'
import { register as config } from './commands/config.ts'
import { register as demo } from './commands/demo.ts'
import { register as down } from './commands/down.ts'
import { register as logs } from './commands/logs.ts'
import { register as prepare } from './commands/prepare.ts'
import { register as reset } from './commands/reset.ts'
import { register as schemas } from './commands/schemas.ts'
import { register as send } from './commands/send.ts'
import { register as status } from './commands/status.ts'
import { register as tail } from './commands/tail.ts'
import { register as test } from './commands/test.ts'
import { register as up } from './commands/up.ts'
import { register as why } from './commands/why.ts'
import { exitCodes } from './exit-codes.ts'
import { checkout } from './paths.ts'

/** Every command of `weir`, in the order of its help. */
const commands: readonly ((program: Command) => void)[] = [
  demo,
  up,
  down,
  status,
  logs,
  reset,
  schemas,
  config,
  send,
  tail,
  why,
  prepare,
  check,
  test,
  bench,
]

const { version } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as { readonly version: string }

const program = new Command('weir')
  .version(version)
  .description('Weir: each event once, within budgets, on the record.')
  .showHelpAfterError('(weir --help, or --help on a command, says more)')
  .exitOverride()
for (const register of commands) register(program)

try {
  await program.parseAsync(process.argv)
} catch (error) {
  process.exitCode = report(error)
}

/** Prints what a person can act on; the stack only with WEIR_DEBUG=1. */
function report(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage
  if (error instanceof WeirError) {
    process.stderr.write(`weir: ${error.message}\n  [${error.code}] ${errorCatalogue[error.code].remedy}\n`)
  } else process.stderr.write(`weir: ${error instanceof Error ? error.message : String(error)}\n`)
  if (process.env['WEIR_DEBUG'] === '1') process.stderr.write(`${error instanceof Error ? error.stack : ''}\n`)
  if (!(error instanceof WeirError)) return exitCodes.failed
  if (error.code === 'invalid_value') return exitCodes.usage
  return error.code === 'prerequisite_missing' ? exitCodes.prerequisite : exitCodes.failed
}
