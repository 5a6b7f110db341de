import { topicNames } from '@weir/core'
import { describe, expect, it } from 'vitest'
import { topicSpecs } from './topic-specs.ts'

const specs = topicSpecs(topicNames('x.'), {
  partitions: 6,
  replicationFactor: 3,
  minInsyncReplicas: 2,
  agents: ['ops'],
})
const spec = (topic: string) => {
  const found = specs.find(entry => entry.topic === topic)
  if (!found) throw new Error(`there is no ${topic}`)
  return found
}
const maxBytes = (topic: string) => Number(spec(topic).settings['max.message.bytes'])

describe('table of topics', () => {
  it('has every topic and one for each agent', () => {
    expect(specs.map(({ topic }) => topic).toSorted()).toEqual([
      'x.actions',
      'x.agent.ops',
      'x.control',
      'x.decisions',
      'x.dedup-state',
      'x.events',
      'x.outcomes',
      'x.parked',
      'x.raw',
      'x.receipts',
      'x.released',
    ])
  })

  it('lets a record that was accepted fit wherever it can end', () => {
    const limits = ['x.raw', 'x.events', 'x.agent.ops', 'x.parked'].map(maxBytes)
    expect(limits).toEqual(limits.toSorted((a, b) => a - b))
    expect(new Set(limits).size).toBe(4)
    expect(maxBytes('x.released')).toBeGreaterThan(maxBytes('x.events'))
  })

  it('never leaves the compression to producers, and stamps the time of append everywhere', () => {
    for (const { settings } of specs) {
      expect(['uncompressed', 'gzip']).toContain(settings['compression.type'])
      expect(settings['message.timestamp.type']).toBe('LogAppendTime')
    }
  })

  it('gives the topics of the flow one partition count, and control one partition', () => {
    const counts = new Map(specs.map(({ topic, partitions }) => [topic, partitions]))
    expect(counts.get('x.control')).toBe(1)
    counts.delete('x.control')
    expect(new Set(counts.values())).toEqual(new Set([6]))
  })

  it('keeps parked records for good, and keys longer than the replay window', () => {
    const days = (topic: string) => Number(spec(topic).settings['retention.ms']) / 86_400_000
    expect(spec('x.parked').settings['retention.ms']).toBe('-1')
    expect([days('x.raw'), days('x.dedup-state') > 30]).toEqual([30, true])
  })
})
