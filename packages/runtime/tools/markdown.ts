/** A table with padded columns, as prettier writes it. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const escaped = [head, ...rows].map(row => row.map(cell => cell.replaceAll('|', '\\|')))
  const widths = head.map((_, i) => Math.max(3, ...escaped.map(row => (row[i] ?? '').length)))
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(' | ')} |`
  const [first = [], ...rest] = escaped
  return [line(first), line(widths.map(width => '-'.repeat(width))), ...rest.map(line)].join('\n')
}

/** Code in a table cell. */
export function code(text: string): string {
  return `\`${text}\``
}
