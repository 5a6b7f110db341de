/** What happened, as a hash always, and in words when somebody wants to read it. */
export class Journal {
  readonly #lines: string[] | null
  #hash = 0x811c9dc5

  constructor(options: { readonly keepsLines: boolean }) {
    this.#lines = options.keepsLines ? [] : null
  }

  note(atMs: number, who: string, what: string): void {
    this.#mix(atMs)
    this.#mixText(who)
    this.#mixText(what)
    this.#lines?.push(`${String(atMs).padStart(7)} ms  ${who}: ${what}`)
  }

  /** Only for people: does not count for the hash, so that it may be made from what others wrote. */
  explain(line: () => string): void {
    this.#lines?.push(line())
  }

  get lines(): readonly string[] {
    return this.#lines ?? []
  }

  /** Equal for equal runs. */
  get hash(): string {
    return (this.#hash >>> 0).toString(16).padStart(8, '0')
  }

  #mix(value: number): void {
    this.#hash = Math.imul(this.#hash ^ (value | 0), 0x01000193)
  }

  #mixText(text: string): void {
    for (let i = 0; i < text.length; i++) this.#mix(text.charCodeAt(i))
    this.#mix(0)
  }
}
