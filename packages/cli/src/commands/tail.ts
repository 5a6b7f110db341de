import { setTimeout as delay } from 'node:timers/promises'
import { agentTopic, topicNames, WeirError, type LogRecord } from '@weir/core'
import { connectBroker } from '@weir/kafka'
import { createLog } from '@weir/runtime'
import type { Command } from 'commander'
import { exitCodes } from '../exit-codes.ts'
import { runningSystem } from '../system-file.ts'

interface Options {
  readonly fromStart?: boolean
  readonly max?: string
  readonly json?: boolean
}

const maxShownBytes = 200
const closeWithinMs = 2_000

/** `weir tail`: what reaches an agent, as it arrives. */
export function register(program: Command): void {
  program
    .command('tail')
    .description('Follow the topic of an agent: one line per event. Ctrl-C ends it.')
    .argument('<agent>', 'name of the agent in weir.yaml')
    .option('--from-start', 'begin with the first event that is kept')
    .option('--max <n>', 'end after so many events')
    .option('--json', 'print one JSON object per line')
    .addHelpText('after', '\nExample: weir tail triage --from-start')
    .action(async (agent: string, options: Options) => {
      process.exitCode = await tail(agent, options)
    })
}

async function tail(agent: string, options: Options): Promise<number> {
  const max = options.max === undefined ? Infinity : Number(options.max)
  if (!(max >= 1)) throw new WeirError('invalid_value', `--max ${options.max ?? ''}: give a whole number of at least 1`)
  const system = runningSystem()
  const log = createLog({ service: 'weir', level: 'error' })
  const broker = connectBroker({ brokers: system.WEIR_KAFKA_BROKERS.split(','), clientId: 'weir-tail', log })
  let isEnding = false
  process.once('SIGINT', () => {
    isEnding = true
  })
  try {
    const topic = agentTopic(topicNames(system.topicPrefix), agent)
    const [description] = await broker.admin.describe([topic])
    const reader = await broker.openReader()
    const next = await Promise.all(
      Array.from({ length: description?.partitions ?? 0 }, async (_, partition) => {
        const { startOffset, endOffset } = await broker.admin.bounds({ topic, partition })
        return options.fromStart === true ? startOffset : endOffset
      }),
    )
    let shown = 0
    while (!isEnding && shown < max) {
      for (const [partition, fromOffset] of next.entries()) {
        const fetched = await reader.fetch({ topic, partition, fromOffset, maxWaitMs: 50 })
        next[partition] = fetched.nextOffset
        for (const record of fetched.records) {
          if (shown++ < max) console.log(lineOf(record, options.json === true))
        }
      }
    }
    return exitCodes.ok
  } finally {
    await Promise.race([broker.close(), delay(closeWithinMs, undefined, { ref: false })])
  }
}

function lineOf(record: LogRecord, json: boolean): string {
  const header = (name: string): string | null => record.headers.find(([n]) => n === name)?.[1].toString('utf8') ?? null
  const value = record.value ?? Buffer.alloc(0)
  const event = {
    time: new Date(record.timestampMs).toISOString(),
    type: header('ce_type'),
    subject: header('ce_subject'),
    source: header('ce_source'),
    decisionId: header('ce_decisionid'),
    attempt: Number(header('ce_attempt') ?? 0),
    partition: record.partition,
    offset: record.offset,
  }
  if (json) return JSON.stringify({ ...event, data: value.toString('base64') })
  const text = JSON.stringify(value.subarray(0, maxShownBytes).toString('utf8')).slice(1, -1).replaceAll('\\"', '"')
  const rest = value.length > maxShownBytes ? ` … (${value.length} bytes)` : ''
  return `${event.time}  ${event.type ?? '?'}  ${event.subject ?? '-'}  decision ${event.decisionId ?? '?'}\n    ${text}${rest}`
}
