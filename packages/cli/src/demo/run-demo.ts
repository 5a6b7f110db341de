import { setTimeout as delay } from 'node:timers/promises'
import { topicNames } from '@weir/core'
import { step, stderrProgress, waitUntil } from '@weir/ops'
import { openDatabase, type Database } from '@weir/postgres'
import type { System } from '@weir/system'
import { Sender } from './client.ts'
import { Observer } from './observe.ts'
import { deniedReasons, isComplete, resultOf, tableOf } from './report.ts'
import { Scenario } from './scenario.ts'
import { exitCodes } from '../exit-codes.ts'
import { startLocalSystem } from '../local-system.ts'
import type { OwnedRun } from '../owned-run.ts'

const topicPrefix = 'demo.'
const partitions = 6
/** Stripe's second deliveries come seconds after the first. */
const stripeRetryMs = 3_000

/** Starts everything, sends, kills, waits, compares. Returns the exit code. */
export async function runDemo(run: OwnedRun, json: boolean): Promise<number> {
  const startedAt = performance.now()
  // A killed instance's partitions move after this silence; the default of 20 s is for production.
  const env = { WEIR_GROUP_SESSION_TIMEOUT_MS: '6000', WEIR_LOG_LEVEL: 'info' }
  const { stack, system } = await startLocalSystem(run, { database: 'weir_demo', topicPrefix, partitions, env })
  await system.startServices()
  const observer = await Observer.open({
    brokers: stack.urls.WEIR_KAFKA_BROKERS,
    registryUrl: stack.urls.WEIR_SCHEMA_REGISTRY_URL,
    topics: topicNames(topicPrefix),
    partitions,
  })
  run.onEnd(() => observer.close())
  const sender = new Sender(system.instance('ingest').httpUrl)
  const scenario = new Scenario(sender, system.options.secrets)
  await step(stderrProgress, 'sending, with dedup and policy killed in the middle', () => sendAll(scenario, system))
  await step(stderrProgress, 'waiting until every event has ended somewhere', () =>
    waitUntil(async () => (await observer.readOn()) === 0 && isComplete(scenario, observer), {
      what: 'all events',
      withinMs: 90_000,
      signal: run.signal,
    }).catch(noteUnlessAborted(run.signal)),
  )
  const audit = new AuditClient(system)
  run.onEnd(() => audit.close())
  await step(stderrProgress, 'waiting until the audit store holds every message', () =>
    waitUntil(async () => (await observer.readOn()) === 0 && (await audit.rows()) >= observer.messages, {
      what: 'the audit store',
      withinMs: 60_000,
      signal: run.signal,
    }).catch(noteUnlessAborted(run.signal)),
  )
  const { customer } = scenario.storyOrder
  const bySubject = await audit.why(customer)
  const byKey = await audit.why(bySubject.events[0]?.eventKey ?? customer)
  const { result, faults } = resultOf({
    sender,
    scenario,
    observer,
    auditMessages: await audit.rows(),
    sentences: [bySubject.sentences.length, byKey.sentences.length],
    whyMs: Math.round(Math.max(bySubject.ms, byKey.ms)),
    wallSeconds: Math.round((performance.now() - startedAt) / 100) / 10,
  })
  console.log(tableOf(result))
  console.log(`\nWhy did that reach the agent? Asked by subject ${customer} (${Math.round(bySubject.ms)} ms):`)
  for (const sentence of bySubject.sentences) console.log(`  ${sentence}`)
  console.log(`\nAsked by its event key (${Math.round(byKey.ms)} ms):`)
  for (const sentence of byKey.sentences) console.log(`  ${sentence}`)
  console.log(`\nWhy were ${result.denied} denied? ${deniedReasons(observer)[0] ?? 'nothing was denied'}`)
  for (const fault of faults) console.log(`DOES NOT BALANCE  ${fault}`)
  console.log(
    '\nNext: `./weir up` leaves the same system running; README.md has the tour, ARCHITECTURE.md the way through the code.',
  )
  if (json) console.log(JSON.stringify(result))
  return result.ok ? exitCodes.ok : exitCodes.failed
}

/** Everything at once, as senders do; dedup and policy die while events are in flight and are started again. */
async function sendAll(scenario: Scenario, system: System): Promise<void> {
  const stripe = scenario.stripe()
  const others = [
    scenario.github(),
    scenario.cloudEvents(),
    scenario.deploys(),
    scenario.apiDuplicate(),
    scenario.hostile(),
  ]
  const { again } = await stripe
  const killed = killAndRestart(system)
  const shop = scenario.shop()
  await Promise.all([...others, shop])
  await Promise.all([killed, delay(stripeRetryMs)])
  await again()
}

/** What is missing when a wait is over is told by the ledger; an interrupt ends the demo. */
function noteUnlessAborted(signal: AbortSignal): (error: unknown) => void {
  return error => {
    signal.throwIfAborted()
    stderrProgress.line(`  ${String(error)}`)
  }
}

async function killAndRestart(system: System): Promise<void> {
  await Promise.all([system.kill('dedup'), system.kill('policy')])
  await Promise.all([system.start('dedup'), system.start('policy')])
}

interface Story {
  readonly sentences: readonly string[]
  readonly events: readonly { readonly eventKey: string | null }[]
  readonly ms: number
}

class AuditClient {
  readonly #base: string
  readonly #headers: Readonly<Record<string, string>>
  readonly #db: Database

  constructor(system: System) {
    this.#db = openDatabase({ url: system.logins.audit_reader, applicationName: 'weir-demo', maxConnections: 1 })
    this.#base = system.instance('audit-sink').httpUrl
    this.#headers = { authorization: `Bearer ${system.options.secrets.apiKeys.analyst}` }
  }

  /** Counted in the store itself, with the reader's rights. */
  async rows(): Promise<number> {
    const [row] = await this.#db.query<{ n: number }>('select count(*)::int as n from audit.messages')
    return row?.n ?? 0
  }

  async close(): Promise<void> {
    await this.#db.close()
  }

  async why(question: string): Promise<Story> {
    const startedAt = performance.now()
    const story = await this.#get<Omit<Story, 'ms'>>(`/v1/why?q=${encodeURIComponent(question)}`)
    return { ...story, ms: performance.now() - startedAt }
  }

  async #get<T>(path: string): Promise<T> {
    const response = await fetch(this.#base + path, { headers: this.#headers, signal: AbortSignal.timeout(30_000) })
    if (!response.ok) throw new Error(`the audit API answered ${response.status} to ${path}`)
    return (await response.json()) as T
  }
}
