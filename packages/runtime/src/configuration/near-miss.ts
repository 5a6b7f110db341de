/** The candidate a mistyped name most likely means, `null` when none is near: at most a third of its letters differ. */
function nearMiss(name: string, candidates: readonly string[]): string | null {
  let best: string | null = null
  let bestDistance = Infinity
  for (const candidate of candidates) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase())
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  if (best === null) return null
  return bestDistance <= Math.max(1, Math.floor(Math.max(best.length, name.length) / 3)) ? best : null
}

/** ` Did you mean "x"?` or nothing. */
export function didYouMean(name: string, candidates: readonly string[]): string {
  const near = nearMiss(name, candidates)
  return near === null ? '' : ` Did you mean "${near}"?`
}

/** Levenshtein: insertions, deletions and replacements. */
function editDistance(a: string, b: string): number {
  let last = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replace = (last[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      row.push(Math.min(replace, (last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1))
    }
    last = row
  }
  return last[b.length] ?? 0
}
