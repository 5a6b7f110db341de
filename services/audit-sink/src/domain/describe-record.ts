import type { LogRecord, TopicNames } from '@weir/core'
import type { Decoder } from '../ports.ts'
import {
  actionColumns,
  agentColumns,
  contractOf,
  controlColumns,
  decisionColumns,
  opaqueColumns,
  outcomeColumns,
  parkedColumns,
  rawEventColumns,
  receiptColumns,
  releaseColumns,
  type Columns,
} from './columns.ts'

/** Finds the columns of any record. No payload can make it fail; it throws only while the registry is away. */
export async function describeRecord(topics: TopicNames, decoder: Decoder, record: LogRecord): Promise<Columns> {
  const contract = contractOf(topics, record.topic)
  switch (contract) {
    case 'agent':
      return agentColumns(topics, record)
    case 'parked': {
      const decoded = await decoder.decode('RawEvent', record.value)
      return parkedColumns(record, decoded.kind === 'ok' ? decoded.value : null)
    }
    case 'RawEvent':
      return await read('RawEvent', event => rawEventColumns(event, record.topic === topics.events))
    case 'Receipt':
      return await read('Receipt', receiptColumns)
    case 'Decision':
      return await read('Decision', decisionColumns)
    case 'Release':
      return await read('Release', releaseColumns)
    case 'Outcome':
      return await read('Outcome', outcomeColumns)
    case 'Action':
      return await read('Action', actionColumns)
    case 'Control':
      return await read('Control', controlColumns)
    case 'KeyState':
      return opaqueColumns(contract, record, 'not audited')
  }

  async function read<Name extends Parameters<Decoder['decode']>[0]>(
    name: Name,
    columns: (value: Extract<Awaited<ReturnType<typeof decoder.decode<Name>>>, { kind: 'ok' }>['value']) => Columns,
  ): Promise<Columns> {
    const decoded = await decoder.decode(name, record.value)
    return decoded.kind === 'ok'
      ? columns(decoded.value)
      : opaqueColumns(contract, record, `${decoded.code}: ${decoded.detail}`)
  }
}
