import { WeirError } from '@weir/core'
import { pushSchemas } from '@weir/kafka'
import type { Command } from 'commander'
import { stateDirOf } from '../paths.ts'
import { readSystem } from '../system-file.ts'

interface Options {
  readonly registry?: string
  readonly json?: boolean
}

/** `weir schemas push|check`: the message contracts and the registry. */
export function register(program: Command): void {
  const schemas = program.command('schemas').description('Message contracts and the schema registry.')
  for (const [name, description] of [
    ['push', 'Register all message contracts. A change that would break readers is refused.'],
    ['check', 'Say whether all message contracts could be registered, without registering any.'],
  ] as const) {
    schemas
      .command(name)
      .description(description)
      .option('--registry <url>', 'registry; default WEIR_SCHEMA_REGISTRY_URL, else that of `weir up`')
      .option('--json', 'print one JSON object')
      .addHelpText('after', `\nExample: weir schemas ${name} --registry http://127.0.0.1:8081/apis/ccompat/v7`)
      .action(async (options: Options) => await run(name, options))
  }
}

async function run(name: 'push' | 'check', options: Options): Promise<void> {
  const url =
    options.registry ??
    process.env['WEIR_SCHEMA_REGISTRY_URL'] ??
    readSystem(stateDirOf('up'))?.WEIR_SCHEMA_REGISTRY_URL
  if (url === undefined) {
    throw new WeirError(
      'prerequisite_missing',
      'no registry: give --registry, set WEIR_SCHEMA_REGISTRY_URL, or run weir up',
    )
  }
  const pushed = await pushSchemas({ registryUrl: url, check: name === 'check' })
  if (options.json === true) console.log(JSON.stringify({ ok: true, schemas: pushed }))
  else
    for (const { subject, id } of pushed) console.log(id === null ? `${subject}: compatible` : `${subject}: id ${id}`)
}
