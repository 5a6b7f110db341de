import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { freePorts, isFree } from './wait.ts'

/** The ports of a stack's servers, by name: the same at each start as long as they are free. */
export class PortBook {
  readonly #file: string
  readonly #ports: Map<string, number>

  constructor(file: string) {
    this.#file = file
    const known = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Record<string, number>) : {}
    this.#ports = new Map(Object.entries(known))
  }

  async take(name: string): Promise<number> {
    const known = this.#ports.get(name)
    if (known !== undefined && (await isFree(known))) return known
    const [port = 0] = await freePorts(1)
    this.#ports.set(name, port)
    writeFileSync(this.#file, `${JSON.stringify(Object.fromEntries(this.#ports), null, 2)}\n`)
    return port
  }
}
