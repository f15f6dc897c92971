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

const words = new Map<string, readonly string[]>()
const pairs = new Map<string, Map<string, number>>()
/** Names and pairs of names that are remembered, since a file compares the same ones often. */
const MAX_REMEMBERED = 20_000
let remembered = 0

function wordsOf(name: string): readonly string[] {
  const known = words.get(name)
  if (known !== undefined) return known
  const found = name
    .split(/_|(?<=[a-z0-9])(?=[A-Z])/)
    .map((word) => word.toLowerCase())
    .filter((word) => word !== '')
  if (words.size > MAX_REMEMBERED) words.clear()
  words.set(name, [...new Set(found)])
  return words.get(name)!
}

/** Similarity of two identifiers, 0 to 1: by spelling, shared words, prefix or suffix. */
export function similarity(a: string, b: string): number {
  const known = pairs.get(a)?.get(b)
  if (known !== undefined) return known
  const [from, to] = [a.slice(0, 40), b.slice(0, 40)]
  const spelling = 1 - editDistance(from, to) / Math.max(from.length, to.length, 1)
  const [left, right] = [wordsOf(a), wordsOf(b)]
  const shared = left.filter((word) => right.includes(word)).length
  const byWords = shared / Math.max(left.length, right.length, 1)
  const result = Math.max(0, Math.min(1, Math.max(spelling, byWords)))
  if (remembered++ > MAX_REMEMBERED) {
    pairs.clear()
    remembered = 0
  }
  const row = pairs.get(a)
  if (row === undefined) pairs.set(a, new Map([[b, result]]))
  else row.set(b, result)
  return result
}
