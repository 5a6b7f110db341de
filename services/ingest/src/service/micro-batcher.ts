import { WeirError } from '@weir/core'

export interface MicroBatcherOptions<In, Out> {
  /** How long the first of a batch waits for company, milliseconds. */
  readonly lingerMs: number
  readonly maxBatch: number
  /** Waiting and running at most; more is `temporarily_unavailable`. */
  readonly maxQueued: number
  /** Batches under way at once. */
  readonly maxRunning: number
  /** Answers in the order of the items. What it throws, every item of the batch gets. */
  readonly run: (items: readonly In[]) => Promise<readonly Out[]>
}

export interface MicroBatcher<In, Out> {
  readonly submit: (item: In) => Promise<Out>
}

interface Waiting<In, Out> {
  readonly item: In
  readonly resolve: (out: Out) => void
  readonly reject: (error: unknown) => void
}

/** Turns single calls into one call per few milliseconds, so that no request waits for a store alone. */
export function createMicroBatcher<In, Out>(options: MicroBatcherOptions<In, Out>): MicroBatcher<In, Out> {
  const { lingerMs, maxBatch, maxQueued, maxRunning } = options
  let waiting: Waiting<In, Out>[] = []
  let running = 0
  let queued = 0
  let timer: NodeJS.Timeout | null = null

  const flush = (): void => {
    if (timer !== null) clearTimeout(timer)
    timer = null
    while (waiting.length > 0 && running < maxRunning) {
      const batch = waiting.slice(0, maxBatch)
      waiting = waiting.slice(maxBatch)
      running++
      void runBatch(options, batch).finally(() => {
        running--
        queued -= batch.length
        if (waiting.length > 0) flush()
      })
    }
  }
  return {
    submit: item =>
      new Promise((resolve, reject) => {
        if (queued >= maxQueued) {
          reject(new WeirError('temporarily_unavailable', `${queued} calls wait already, the limit is ${maxQueued}`))
          return
        }
        queued++
        waiting.push({ item, resolve, reject })
        if (waiting.length >= maxBatch) flush()
        else timer ??= setTimeout(flush, lingerMs)
      }),
  }
}

/** Never rejects. */
async function runBatch<In, Out>(
  options: MicroBatcherOptions<In, Out>,
  batch: readonly Waiting<In, Out>[],
): Promise<void> {
  let answers: readonly Out[]
  try {
    answers = await options.run(batch.map(waiting => waiting.item))
  } catch (error) {
    for (const { reject } of batch) reject(error)
    return
  }
  batch.forEach(({ resolve, reject }, i) => {
    const answer = answers[i]
    if (answer === undefined)
      reject(new WeirError('internal', `A batch of ${batch.length} got ${answers.length} answers`))
    else resolve(answer)
  })
}
