import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { startLocalSystem } from '../local-system.ts'
import { ownedRun } from '../owned-run.ts'
import { stateDirOf } from '../paths.ts'

/** `weir up`: the whole system, left running. */
export function register(program: Command): void {
  program
    .command('up')
    .description('Start everything and leave it running: the stack, then the services. `weir down` ends it.')
    .option('--json', 'print where everything is as one JSON object')
    .addHelpText('after', '\nExample: weir up && weir send github release --times 3')
    .action(async (options: { readonly json?: boolean }) => {
      process.exitCode = await up(options.json === true)
    })
}

async function up(json: boolean): Promise<number> {
  const stateDir = stateDirOf('up')
  return await ownedRun(stateDir, async run => {
    let isUp = false
    const ends: (() => Promise<void>)[] = []
    run.onEnd(async () => {
      // What was started stays when all of it is up; a start that failed half-way leaves nothing.
      if (!isUp) for (const end of ends.reverse()) await end()
    })
    const local = { stateDir, signal: run.signal, onEnd: (end: () => Promise<void>) => void ends.push(end) }
    const { stack, system } = await startLocalSystem(local, { database: 'weir', topicPrefix: 'weir.' })
    await system.startServices()
    const where = {
      ingest: system.instance('ingest').httpUrl,
      audit: system.instance('audit-sink').httpUrl,
      ...stack.urls,
      topicPrefix: 'weir.',
      instances: system.instances(),
    }
    mkdirSync(stateDir, { recursive: true })
    writeFileSync(join(stateDir, 'system.json'), JSON.stringify(where, null, 2), { mode: 0o600 })
    isUp = true
    if (json) console.log(JSON.stringify(where))
    else
      console.log(
        `Weir is up.\n  events:  ${where.ingest}/v1/events\n  audit:   ${where.audit}/v1/why\nEnd it with: weir down`,
      )
    return 0
  })
}
