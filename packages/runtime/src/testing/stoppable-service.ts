// A service for lifecycle.test.ts: does what its argument says and logs each step.
import { setTimeout as delay } from 'node:timers/promises'
import { runService, type ServiceContext } from '../index.ts'

const never = new Promise<void>(() => {})

async function openAll({ lifecycle, log }: ServiceContext): Promise<void> {
  // Keeps the process alive as a server would.
  const door = setInterval(() => {}, 1_000)
  lifecycle.onStop('pool', async () => log.info({}, 'closed pool'))
  lifecycle.onStop('work', async () => {
    await delay(100)
    log.info({}, 'work in hand is done')
  })
  lifecycle.onStop('door', async () => {
    clearInterval(door)
    log.info({}, 'closed door')
  })
}

const scenarios: Record<string, (context: ServiceContext) => Promise<void>> = {
  busy: openAll,
  hanging: async context => {
    await openAll(context)
    context.lifecycle.onStop('stuck', async () => await never)
  },
  // One closer may not use up the time of the others.
  'hanging briefly': async context => {
    await openAll(context)
    context.lifecycle.onStop('stuck', async () => await never, 50)
  },
  'failing to close': async context => {
    await openAll(context)
    context.lifecycle.onStop('broken', async () => {
      throw new Error('cannot close')
    })
  },
  'slow start': async context => {
    const { lifecycle, log } = context
    log.info({}, 'starting')
    await new Promise<void>(resolve => {
      lifecycle.signal.addEventListener('abort', () => resolve())
    })
    await openAll(context)
  },
  'failing start': async context => {
    await openAll(context)
    throw new Error('nothing to connect to')
  },
  'failing later': async context => {
    await openAll(context)
    setImmediate(() => {
      throw new Error('a bug')
    })
  },
  'rejecting later': async context => {
    await openAll(context)
    setImmediate(() => {
      void Promise.reject(new Error('a forgotten promise'))
    })
  },
  'holding on': async ({ lifecycle, log }) => {
    setInterval(() => {}, 1_000)
    lifecycle.onStop('pool', async () => log.info({}, 'closed pool'))
  },
}

const scenario = scenarios[process.argv[2] ?? '']
if (!scenario) throw new Error(`no scenario ${process.argv[2]}`)
runService('stoppable', scenario)
