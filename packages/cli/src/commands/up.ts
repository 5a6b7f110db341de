import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { answersOk, isFree } from '@weir/ops'
import type { ServiceName } from '@weir/system'
import type { Command } from 'commander'
import { startLocalSystem } from '../local-system.ts'
import { ownedRun, type OwnedRun } from '../owned-run.ts'
import { stateDirOf } from '../paths.ts'
import { readSystem, type SystemFile } from '../system-file.ts'
import { stopUp } from './down.ts'

/** `weir up`: the whole system, left running. */
export function register(program: Command): void {
  program
    .command('up')
    .description('Start everything and leave it running: the stack, then the services. `weir down` ends it.')
    .option('--json', 'print where everything is as one JSON object')
    .addHelpText('after', '\nExample: weir up && weir send github release --times 3')
    .action(async (options: { readonly json?: boolean }) => {
      process.exitCode = await ownedRun(stateDirOf('up'), async run => {
        const where = (await stillUp(run.stateDir)) ?? (await start(run))
        console.log(options.json === true ? JSON.stringify(where) : describe(where))
        return 0
      })
    })
}

/** What an earlier `weir up` left, when all of it is ready. */
async function stillUp(stateDir: string): Promise<SystemFile | null> {
  const system = readSystem(stateDir)
  if (system === null) return null
  const ready = await Promise.all(system.instances.map(({ adminUrl }) => answersOk(`${adminUrl}/readyz`)))
  return ready.every(Boolean) ? system : null
}

async function start(run: OwnedRun): Promise<SystemFile> {
  await stopUp()
  let isUp = false
  const ends: (() => Promise<void>)[] = []
  run.onEnd(async () => {
    // What was started stays when all of it is up; a start that failed half-way leaves nothing.
    if (!isUp) for (const end of ends.reverse()) await end()
  })
  const local = {
    stateDir: run.stateDir,
    signal: run.signal,
    onEnd: (end: () => Promise<void>) => void ends.push(end),
  }
  const options = { database: 'weir', topicPrefix: 'weir.', data: 'kept', ports: await usualPorts() } as const
  const { stack, system } = await startLocalSystem(local, options)
  await system.startServices()
  run.signal.throwIfAborted()
  const where = {
    ingest: system.instance('ingest').httpUrl,
    audit: system.instance('audit-sink').httpUrl,
    ...stack.urls,
    topicPrefix: 'weir.',
    instances: system.instances(),
  }
  writeFileSync(join(run.stateDir, 'system.json'), JSON.stringify(where, null, 2), { mode: 0o600 })
  isUp = true
  system.release()
  stack.supervisor.release()
  return where
}

/** The ports of the documentation, as far as nobody else has them. */
async function usualPorts(): Promise<Partial<Record<ServiceName, number>>> {
  const usual = { ingest: 8080, policy: 8082, 'audit-sink': 8083 } as const
  const free = await Promise.all(Object.values(usual).map(isFree))
  return Object.fromEntries(Object.entries(usual).filter((_, i) => free[i] === true))
}

function describe(where: SystemFile): string {
  return `Weir is up.\n  events:  ${where.ingest}/v1/events\n  audit:   ${where.audit}/v1/why\nEnd it with: weir down`
}
