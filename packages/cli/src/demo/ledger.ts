// The exact book of the demo: what was sent and must arrive, against what did arrive.

/** An event that was accepted, and where it must end. */
export interface Expected {
  /** Event key, hex. */
  readonly key: string
  /** For people: where it came from and what it is called. */
  readonly name: string
  readonly agents: readonly string[]
}

/** Of these events exactly `exactly` reach the agent: one business action, or a run with a ceiling. */
export interface Choice {
  readonly name: string
  readonly agent: string
  readonly keys: readonly string[]
  readonly exactly: number
}

export interface Delivered {
  readonly agent: string
  readonly key: string
  readonly orderingKey: string
}

export interface Balance {
  readonly lost: readonly string[]
  readonly doubled: readonly string[]
  readonly unexpected: readonly string[]
  readonly reordered: readonly string[]
}

export interface Book {
  readonly expected: readonly Expected[]
  readonly choices: readonly Choice[]
  /** Event keys of one ordering key in the order they were accepted. */
  readonly orders: readonly (readonly string[])[]
}

/** Compares the book with the agents' topics. Every list names what is wrong; all empty means it balances. */
export function balance(book: Book, delivered: readonly Delivered[]): Balance {
  const times = new Map<string, number>()
  for (const { agent, key } of delivered) times.set(`${agent} ${key}`, (times.get(`${agent} ${key}`) ?? 0) + 1)
  const chosen = new Set(book.choices.flatMap(choice => choice.keys.map(key => `${choice.agent} ${key}`)))
  const lost: string[] = []
  const wanted = new Set<string>(chosen)
  for (const event of book.expected) {
    for (const agent of event.agents) {
      const place = `${agent} ${event.key}`
      wanted.add(place)
      if (!chosen.has(place) && !times.has(place)) lost.push(`${event.name} did not reach ${agent}`)
    }
  }
  const doubled = [...times].filter(([, n]) => n > 1).map(([place, n]) => `${place}: ${n} times`)
  for (const choice of book.choices) {
    const count = choice.keys.filter(key => times.has(`${choice.agent} ${key}`)).length
    if (count < choice.exactly) lost.push(`${choice.name}: ${count} of ${choice.exactly} reached ${choice.agent}`)
    if (count > choice.exactly)
      doubled.push(`${choice.name}: ${count} instead of ${choice.exactly} reached ${choice.agent}`)
  }
  const unexpected = [...times.keys()].filter(place => !wanted.has(place))
  return { lost, doubled, unexpected, reordered: book.orders.flatMap(keys => reordered(keys, delivered)) }
}

function reordered(keys: readonly string[], delivered: readonly Delivered[]): string[] {
  const wanted = new Map(keys.map((key, i) => [key, i]))
  const seen = delivered.filter(({ key }) => wanted.has(key))
  const late = seen.findIndex(
    (item, i) => i > 0 && (wanted.get(item.key) ?? 0) < (wanted.get(seen[i - 1]?.key ?? '') ?? 0),
  )
  return late < 0 ? [] : [`${seen[late]?.key ?? ''} was overtaken in ${seen[late]?.orderingKey ?? ''}`]
}
