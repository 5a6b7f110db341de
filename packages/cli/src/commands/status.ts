import { join } from 'node:path'
import { answersOk, Supervisor } from '@weir/ops'
import type { Command } from 'commander'
import { exitCodes } from '../exit-codes.ts'
import { stateDirOf } from '../paths.ts'
import { readSystem } from '../system-file.ts'

/** `weir status`: what runs and whether it is ready. */
export function register(program: Command): void {
  program
    .command('status')
    .description(
      'Show what `weir up` left running and whether each service is ready. Exit code 1 when something is not.',
    )
    .option('--json', 'print one JSON object')
    .addHelpText('after', '\nExample: weir status --json')
    .action(async (options: { readonly json?: boolean }) => {
      const report = await look()
      if (options.json === true) console.log(JSON.stringify(report))
      else for (const line of lines(report)) console.log(line)
      process.exitCode = report.ok ? exitCodes.ok : exitCodes.failed
    })
}

interface StatusReport {
  readonly ok: boolean
  readonly processes: readonly string[]
  readonly services: readonly { readonly name: string; readonly ready: boolean; readonly url: string }[]
}

async function look(): Promise<StatusReport> {
  const stateDir = stateDirOf('up')
  const processes = [...new Supervisor(stateDir).running(), ...new Supervisor(join(stateDir, 'services')).running()]
  const system = readSystem(stateDir)
  if (system === null) return { ok: false, processes, services: [] }
  const services = await Promise.all(
    system.instances.map(async ({ name, adminUrl, httpUrl }) => ({
      name,
      ready: await answersOk(`${adminUrl}/readyz`),
      url: httpUrl,
    })),
  )
  return { ok: services.every(service => service.ready), processes, services }
}

function lines(report: StatusReport): string[] {
  if (report.services.length === 0) return ['Weir is not up. Start it with: weir up']
  return report.services.map(
    ({ name, ready, url }) => `${ready ? 'ready    ' : 'NOT READY'}  ${name.padEnd(11)} ${url}`,
  )
}
