/** `$1, $2, …`: the parameters of a function call. */
export function placeholders(count: number): string {
  return Array.from({ length: count }, (_, i) => `$${i + 1}`).join(', ')
}
