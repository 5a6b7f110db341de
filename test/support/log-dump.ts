import { fileURLToPath } from 'node:url'
import { fetchKafka, runCommand, toolsDirOf } from '@weir/ops'

const checkout = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '')
const program = fileURLToPath(new URL('java/LogDump.java', import.meta.url))

export interface DumpedRecord {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: ReadonlyMap<string, Buffer>
}

interface Line {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly key: string | null
  readonly value: string | null
  readonly headers: readonly (readonly [string, string | null])[]
}

/** Every committed record of these topics as Kafka's own Java client reads them: kafkajs must not judge kafkajs. */
export async function dumpLog(brokers: string, topics: readonly string[]): Promise<DumpedRecord[]> {
  const signal = AbortSignal.timeout(300_000)
  const progress = { line: () => undefined }
  const libs = await fetchKafka({ toolsDir: toolsDirOf(checkout), signal, progress })
  const text = await runCommand('java', ['-Xmx256m', '-cp', `${libs}/*`, program, brokers, ...topics])
  return text.split('\n').filter(Boolean).map(toRecord)
}

function toRecord(text: string): DumpedRecord {
  const line = JSON.parse(text) as Line
  const headers = line.headers.map(([name, value]): [string, Buffer] => {
    return [Buffer.from(name, 'hex').toString('utf8'), Buffer.from(value ?? '', 'hex')]
  })
  const { topic, partition, offset } = line
  return { topic, partition, offset, key: bytes(line.key), value: bytes(line.value), headers: new Map(headers) }
}

function bytes(hex: string | null): Buffer | null {
  return hex === null ? null : Buffer.from(hex, 'hex')
}
