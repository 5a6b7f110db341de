import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { randomBytes } from 'node:crypto'
import { mavenLibs } from './maven.ts'
import type { NativeContext } from './native.ts'
import { step } from './progress.ts'
import { runCommand } from './run-command.ts'
import { versions } from './versions.ts'
import { accepts, waitUntil } from './wait.ts'

/** Downloads Kafka's jars when they are not there. Returns their folder. */
export async function fetchKafka(context: Pick<NativeContext, 'toolsDir' | 'signal' | 'progress'>): Promise<string> {
  const { toolsDir, signal, progress } = context
  const target = join(toolsDir, `kafka-${versions.kafka}`)
  return await mavenLibs({ what: `Kafka ${versions.kafka} (43 MB)`, target, signal, progress }, [
    ['org.apache.kafka', 'kafka_2.13', versions.kafka],
    ['org.slf4j', 'slf4j-simple', versions.slf4jSimple],
  ])
}

/** One Kafka node in KRaft mode. Returns its bootstrap address. */
export async function startKafka(context: NativeContext, libs: string): Promise<string> {
  const { supervisor, stateDir, signal } = context
  const port = await context.ports.take('kafka')
  const controllerPort = await context.ports.take('kafka-controller')
  const folder = join(stateDir, 'kafka')
  const data = join(folder, 'data')
  // Formatting writes this file last.
  const keeps = context.data === 'kept' && existsSync(join(data, 'meta.properties'))
  if (!keeps) rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const properties = join(folder, 'server.properties')
  writeFileSync(properties, settings(port, controllerPort, data))
  const classpath = join(libs, '*')
  if (!keeps) {
    const format = ['kafka.tools.StorageTool', 'format', '-t', newClusterId(), '-c', properties]
    await runCommand('java', ['-cp', classpath, ...format], { signal })
  }
  const log = '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn'
  supervisor.start({
    name: 'kafka',
    command: 'java',
    args: ['-Xms256m', '-Xmx512m', '-XX:+UseSerialGC', log, '-cp', classpath, 'kafka.Kafka', properties],
    cwd: folder,
    stopWithinMs: 20_000,
  })
  await step(context.progress, `starting Kafka ${versions.kafka} on port ${port}`, () =>
    waitUntil(() => accepts(port), {
      what: 'Kafka',
      withinMs: 90_000,
      givenUp: () => supervisor.ended('kafka'),
      signal,
    }),
  )
  return `127.0.0.1:${port}`
}

/** Sixteen bytes in Base64; never with a dash in front, which the tool would take for an option. */
export function newClusterId(bytes = randomBytes(16)): string {
  return Buffer.from([(bytes[0] ?? 0) & 0x7f, ...bytes.subarray(1)]).toString('base64url')
}

function settings(port: number, controllerPort: number, dataDir: string): string {
  const lines: Record<string, string | number | boolean> = {
    'process.roles': 'broker,controller',
    'node.id': 1,
    'controller.quorum.voters': `1@127.0.0.1:${controllerPort}`,
    listeners: `PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controllerPort}`,
    'advertised.listeners': `PLAINTEXT://127.0.0.1:${port}`,
    'controller.listener.names': 'CONTROLLER',
    'log.dirs': dataDir,
    'offsets.topic.replication.factor': 1,
    'offsets.topic.num.partitions': 12,
    'transaction.state.log.replication.factor': 1,
    'transaction.state.log.min.isr': 1,
    'transaction.state.log.num.partitions': 12,
    'group.initial.rebalance.delay.ms': 0,
    'group.min.session.timeout.ms': 1000,
    'auto.create.topics.enable': false,
    // Longer than weir.raw is kept: a group offset must not be forgotten before what it points at.
    'offsets.retention.minutes': 60480,
    'log.cleaner.dedupe.buffer.size': 16777216,
    // Conformance tests make the cleaner leave an empty batch behind; they cannot wait for the default of 15 s.
    'log.cleaner.backoff.ms': 500,
    'log.retention.check.interval.ms': 2000,
  }
  return Object.entries(lines)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('')
}
