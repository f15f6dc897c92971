/** Insertions, deletions, substitutions and transpositions of characters between two strings. */
export function editDistance(a: string, b: string): number {
  if (a === b) return 0
  if (Math.abs(a.length - b.length) > 6) return Math.max(a.length, b.length)
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1
      row[j] = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + cost)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        row[j] = Math.min(row[j]!, beforeLast[j - 2]! + 1)
      }
    }
    beforeLast = last
    last = row
  }
  return last[b.length]!
}

/** Similarity of two identifiers, 0 to 1: by spelling, shared words, prefix or suffix. */
export function similarity(a: string, b: string): number {
  const longest = Math.max(a.length, b.length)
  const spelling = 1 - editDistance(a.slice(0, 40), b.slice(0, 40)) / Math.min(longest, 40)
  const words = (name: string): Set<string> =>
    new Set(
      name
        .split(/_|(?<=[a-z0-9])(?=[A-Z])/)
        .map((word) => word.toLowerCase())
        .filter((word) => word !== ''),
    )
  const [left, right] = [words(a), words(b)]
  const shared = [...left].filter((word) => right.has(word)).length
  return Math.max(0, Math.min(1, Math.max(spelling, shared / Math.max(left.size, right.size))))
}
