import { readdirSync, readFileSync } from 'node:fs'
import avsc from 'avsc'
import { describe, expect, it } from 'vitest'

const folder = (name: string): URL => new URL(`../../../../schemas/${name}/`, import.meta.url)

function read(name: string, file: string): avsc.Schema {
  return JSON.parse(readFileSync(new URL(file, folder(name)), 'utf8')) as avsc.Schema
}

/** Why a reader of one contract cannot read what a writer of another wrote, or null. */
function incompatibility(reader: avsc.Schema, writer: avsc.Schema): string | null {
  try {
    avsc.Type.forSchema(reader).createResolver(avsc.Type.forSchema(writer))
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

const files = readdirSync(folder('released')).filter(file => file.endsWith('.avsc'))

describe('the contracts and their last release', () => {
  it('compares every released contract', () => {
    expect(files.length).toBeGreaterThanOrEqual(8)
  })

  it.each(files)('%s: old and new read each other', file => {
    const [now, released] = [read('avro', file), read('released', file)]
    expect([incompatibility(now, released), incompatibility(released, now)]).toEqual([null, null])
  })

  it('refuses a field without a default, and a field that changes its type', () => {
    const released = read('released', 'release.avsc') as { fields: readonly { name: string; type: unknown }[] }
    const added = { ...released, fields: [...released.fields, { name: 'extra', type: 'string' }] }
    const changed = {
      ...released,
      fields: released.fields.map(f => (f.name === 'attempt' ? { ...f, type: 'string' } : f)),
    }
    expect(incompatibility(added as avsc.Schema, released as avsc.Schema)).toMatch(/extra/)
    expect(incompatibility(changed as avsc.Schema, released as avsc.Schema)).not.toBeNull()
  })
})
