/** Where a command says what it does. One line per step, with its duration. */
export interface Progress {
  line(text: string): void
}

export const stderrProgress: Progress = { line: text => void process.stderr.write(`${text}\n`) }

/** Runs a step and says how long it took. */
export async function step<T>(progress: Progress, text: string, work: () => Promise<T>): Promise<T> {
  const startedAt = performance.now()
  progress.line(`  ${text} …`)
  const result = await work()
  progress.line(`  ${text}: ${((performance.now() - startedAt) / 1000).toFixed(1)} s`)
  return result
}
