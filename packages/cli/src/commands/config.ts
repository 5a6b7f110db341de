import { checkConfiguration } from '@weir/runtime'
import type { Command } from 'commander'

interface CheckOptions {
  readonly file: string
  readonly secrets: boolean
  readonly json?: boolean
}

/** `weir config check`: reads weir.yaml as the services do and says what is wrong with it. */
export function register(program: Command): void {
  const config = program.command('config').description('Work with the configuration file weir.yaml.')
  config
    .command('check')
    .description(
      'Check the file and the secrets it refers to, without starting anything. Exit code 1 when it is not valid.',
    )
    .option('-f, --file <path>', 'the file to check', process.env['WEIR_CONFIG'] ?? 'weir.yaml')
    .option('--no-secrets', 'do not look for the secrets, for places that have none')
    .option('--json', 'print the result as one JSON object')
    .addHelpText('after', '\nExample: weir config check --file weir.yaml --no-secrets')
    .action(async (options: CheckOptions) => await check(options))
}

async function check(options: CheckOptions): Promise<void> {
  const { version, counts } = await checkConfiguration(
    options.file,
    process.env,
    options.secrets ? {} : { secretsOf: [] },
  )
  if (options.json === true) {
    console.log(JSON.stringify({ ok: true, file: options.file, version, ...counts }))
    return
  }
  const parts = Object.entries(counts).map(([name, count]) => `${count} ${count === 1 ? name.slice(0, -1) : name}`)
  console.log(`${options.file} is valid: ${parts.join(', ')}.\nversion ${version}`)
}
