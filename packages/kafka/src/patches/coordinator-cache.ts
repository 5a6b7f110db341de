// Extends kafkajs `src/cluster`. A transaction asks four times who its coordinators are; the answer is kept for a second, so
// that one that moved is found by then. A writer that meets the old one is thrown away anyway (R1).

interface Coordinator {
  isConnected(): boolean
}
interface CoordinatorQuestion {
  readonly groupId: string
  readonly coordinatorType?: number
}
type FindCoordinator = (this: object, question: CoordinatorQuestion) => Promise<Coordinator>

const answerAgeMs = 1_000

export function rememberCoordinators(find: FindCoordinator): FindCoordinator {
  const answersOf = new WeakMap<object, Map<string, { readonly coordinator: Coordinator; readonly untilMs: number }>>()
  return async function (question) {
    const answers =
      answersOf.get(this) ?? new Map<string, { readonly coordinator: Coordinator; readonly untilMs: number }>()
    answersOf.set(this, answers)
    const key = `${question.coordinatorType ?? 0} ${question.groupId}`
    const known = answers.get(key)
    if (known && known.untilMs > performance.now() && known.coordinator.isConnected()) return known.coordinator
    const coordinator = await find.call(this, question)
    answers.set(key, { coordinator, untilMs: performance.now() + answerAgeMs })
    return coordinator
  }
}
