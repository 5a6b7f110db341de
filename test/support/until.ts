/** Waits for a condition; the error says what was awaited. */
export async function until(what: string, check: () => Promise<boolean>, withinMs = 60_000): Promise<void> {
  const deadline = Date.now() + withinMs
  while (!(await check())) {
    if (Date.now() > deadline) throw new Error(`waited ${withinMs} ms for ${what}`)
    await new Promise(resolve => setTimeout(resolve, 100))
  }
}
