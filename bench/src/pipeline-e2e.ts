// pipeline.e2e: events posted by an API client until they stand in the agent's topic and in the audit store.
// First a flood (throughput and CPU by stage), then an open loop at a third of it (latency from the scheduled send).
// Leaves out: the load generator's own CPU. A ledger that does not balance is no result.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { agentTopic, eventKey, topicNames, type Broker, type LogReader } from '@weir/core'
import { connectBroker } from '@weir/kafka'
import { startStack, stderrProgress, step, toolsDirOf, waitUntil } from '@weir/ops'
import { createLog } from '@weir/runtime'
import { makeSecrets, System } from '@weir/system'
import { CpuMeter, machine } from './cpu.ts'

const checkout = fileURLToPath(new URL('../../', import.meta.url)).replace(/\/$/, '')
const stateDir = join(checkout, '.weir', 'bench')
const topicPrefix = 'bench.'
const partitions = 6
const floodEvents = 10_000
const loopSeconds = 10
const payloadBytes = 1_024
const services = ['ingest', 'dedup', 'policy', 'audit-sink'] as const

interface Arrived {
  readonly atMs: number
  times: number
}

/** Agent topic, read from the start: event key → when it was appended, and how often. */
class AgentTopic {
  readonly arrived = new Map<string, Arrived>()
  readonly #next = new Map<number, number>()
  readonly #broker: Broker
  readonly #reader: LogReader
  readonly #topic: string

  constructor(broker: Broker, reader: LogReader, topic: string) {
    this.#broker = broker
    this.#reader = reader
    this.#topic = topic
  }

  async readOn(): Promise<void> {
    for (let partition = 0; partition < partitions; partition++) {
      const tp = { topic: this.#topic, partition }
      const { startOffset, endOffset } = await this.#broker.admin.bounds(tp)
      for (let from = this.#next.get(partition) ?? startOffset; from < endOffset;) {
        const fetched = await this.#reader.fetch({ ...tp, fromOffset: from, maxWaitMs: 20 })
        if (fetched.nextOffset === from) break
        from = fetched.nextOffset
        this.#next.set(partition, from)
        for (const record of fetched.records) {
          const key = record.headers.find(([name]) => name === 'ce_id')?.[1].toString('utf8') ?? ''
          const known = this.arrived.get(key)
          if (known === undefined) this.arrived.set(key, { atMs: record.timestampMs, times: 1 })
          else known.times += 1
        }
      }
    }
  }
}

const padding = 'x'.repeat(payloadBytes - 120)
const bodyOf = (id: string): string => JSON.stringify({ event_key: id, type: 'bench.event', data: { id, padding } })

async function postAll(url: string, apiKey: string, ids: readonly string[], lanes: number): Promise<void> {
  let next = 0
  const lane = async (): Promise<void> => {
    for (let i = next++; i < ids.length; i = next++) await post(url, apiKey, ids[i] ?? '')
  }
  await Promise.all(Array.from({ length: lanes }, lane))
}

async function post(url: string, apiKey: string, id: string): Promise<void> {
  const response = await fetch(`${url}/v1/events`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: bodyOf(id),
  })
  await response.arrayBuffer()
  if (response.status !== 202) throw new Error(`event ${id} was answered ${response.status}`)
}

/** Sends on schedule whatever the answers do; latency counts from the scheduled time. */
async function openLoop(
  url: string,
  apiKey: string,
  ids: readonly string[],
  perSecond: number,
): Promise<Map<string, number>> {
  const startMs = Date.now() + 200
  const scheduled = new Map(ids.map((id, i) => [id, startMs + (i * 1_000) / perSecond]))
  await Promise.all(
    ids.map(async id => {
      const waitMs = (scheduled.get(id) ?? 0) - Date.now()
      await new Promise(resolve => setTimeout(resolve, Math.max(0, waitMs)))
      await post(url, apiKey, id)
    }),
  )
  return scheduled
}

function percentile(sorted: readonly number[], share: number): number {
  return Math.round((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0) * 10) / 10
}

async function main(): Promise<number> {
  const signal = new AbortController().signal
  const stack = await startStack({
    stateDir,
    toolsDir: toolsDirOf(checkout),
    env: process.env,
    progress: stderrProgress,
    signal,
  })
  const secrets = makeSecrets()
  let system: System | null = null
  const log = createLog({ service: 'bench', level: 'error' })
  const broker = connectBroker({ brokers: stack.urls.WEIR_KAFKA_BROKERS.split(','), clientId: 'weir-bench', log })
  try {
    system = await System.prepare({
      urls: stack.urls,
      stateDir,
      secrets,
      topicPrefix,
      partitions,
      log,
      configFile: join(checkout, 'weir.yaml'),
      database: 'weir_bench',
      progress: stderrProgress,
      env: { WEIR_LOG_LEVEL: 'warn' },
    })
    await system.startServices()
    return await measure(system, broker, secrets.apiKeys['acme-api'])
  } finally {
    await broker.close()
    await system?.stop()
    await stack.stop()
  }
}

async function measure(system: System, broker: Broker, apiKey: string): Promise<number> {
  const { httpUrl } = system.instance('ingest')
  const topic = new AgentTopic(broker, await broker.openReader(), agentTopic(topicNames(topicPrefix), 'billing'))
  const warm = Array.from({ length: 1_000 }, (_, i) => `warm-${i}`)
  await step(stderrProgress, 'warming up', () => postAll(httpUrl, apiKey, warm, 32))
  const pidFiles = [
    ...services.map(name => ({ name: name as string, file: join(stateDir, 'services', 'run', `${name}.pid`) })),
    ...['kafka', 'postgres', 'redis'].map(name => ({ name, file: join(stateDir, 'run', `${name}.pid`) })),
  ]
  const cpu = CpuMeter.fromPidFiles(pidFiles)
  const all = async (ids: readonly string[]): Promise<void> => {
    await waitUntil(async () => (await topic.readOn(), ids.every(id => topic.arrived.has(keyOf(id)))), {
      what: 'the agent topic',
      withinMs: 120_000,
    })
  }
  await all(warm)
  const flood = Array.from({ length: floodEvents }, (_, i) => `flood-${i}`)
  const before = cpu.seconds()
  const startedMs = Date.now()
  await step(stderrProgress, `flood of ${floodEvents} events`, async () => {
    await postAll(httpUrl, apiKey, flood, 64)
    await all(flood)
  })
  const endedMs = Math.max(...flood.map(id => topic.arrived.get(keyOf(id))?.atMs ?? 0))
  const throughput = floodEvents / ((endedMs - startedMs) / 1_000)
  await step(stderrProgress, 'audit store catching up', () => audited(system, topic))
  const after = cpu.seconds()
  const stages = Object.fromEntries(
    [...after].map(([name, seconds]) => [name, Math.round(((seconds - (before.get(name) ?? 0)) * 1e6) / floodEvents)]),
  )
  const rate = Math.max(50, Math.floor(throughput / 3))
  const loop = Array.from({ length: rate * loopSeconds }, (_, i) => `loop-${i}`)
  const scheduled = await step(stderrProgress, `open loop at ${rate} events/s`, () =>
    openLoop(httpUrl, apiKey, loop, rate),
  )
  await all(loop)
  const latencies = loop
    .map(id => (topic.arrived.get(keyOf(id))?.atMs ?? 0) - (scheduled.get(id) ?? 0))
    .sort((a, b) => a - b)
  await step(stderrProgress, 'audit store catching up', () => audited(system, topic))
  const sent = warm.length + flood.length + loop.length
  const doubled = [...topic.arrived.values()].filter(arrived => arrived.times > 1).length
  const rows = await auditRows(system, 'delivered')
  const balanced = topic.arrived.size === sent && doubled === 0 && rows === sent
  const result = {
    bench: 'pipeline.e2e',
    ledger: { balanced, sent, delivered: topic.arrived.size, doubled, auditedDeliveries: rows },
    ours: {
      throughput: Math.round(throughput),
      cpuMicrosPerEvent: Object.values(stages).reduce((sum, micros) => sum + micros, 0),
      cpuMicrosPerEventByStage: stages,
      p50Ms: percentile(latencies, 0.5),
      p99Ms: percentile(latencies, 0.99),
      latencyAtEventsPerSecond: rate,
    },
    peers: {},
    ratio: {},
    settings: {
      payloadBytes,
      partitions,
      acks: 'all',
      replicationFactor: 1,
      synchronousCommit: 'on',
      floodEvents,
      loopSeconds,
    },
    machine: await machine(),
    at: new Date().toISOString(),
  }
  if (balanced) {
    mkdirSync(join(checkout, 'bench', 'results'), { recursive: true })
    writeFileSync(join(checkout, 'bench', 'results', 'pipeline.e2e.json'), `${JSON.stringify(result, null, 2)}\n`)
  }
  process.stdout.write(`${JSON.stringify(balanced ? result : { bench: result.bench, ledger: result.ledger })}\n`)
  return balanced ? 0 : 1
}

function keyOf(id: string): string {
  return eventKey('acme', 'acme-api', id).toString('hex')
}

async function audited(system: System, topic: AgentTopic): Promise<void> {
  await waitUntil(async () => (await auditRows(system, 'delivered')) >= topic.arrived.size, {
    what: 'the audit store',
    withinMs: 120_000,
  })
}

/** Messages the audit store holds of agent topics. */
async function auditRows(system: System, kind: 'delivered'): Promise<number> {
  const response = await fetch(`${system.instance('audit-sink').httpUrl}/v1/coverage`, {
    headers: { authorization: `Bearer ${system.options.secrets.apiKeys.analyst}` },
  })
  const { logs } = (await response.json()) as { logs: readonly { topic: string; messages: number }[] }
  const prefix = topicNames(topicPrefix).agentPrefix
  return kind === 'delivered' ? logs.filter(l => l.topic.startsWith(prefix)).reduce((sum, l) => sum + l.messages, 0) : 0
}

process.exitCode = await main()
