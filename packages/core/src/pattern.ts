/** `*` at the end of a pattern matches any rest, the empty one too. */
export function matches(pattern: string, text: string): boolean {
  return pattern.endsWith('*') ? text.startsWith(pattern.slice(0, -1)) : pattern === text
}
