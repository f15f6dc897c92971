/** Names longer than this are not compared; of a longer list, only the beginning is. */
const MAX_LENGTH = 64
const MAX_NAMES = 200

const plain = (text: string): string => text.toLowerCase().replaceAll(/[-_ ]/g, '')

/** The known name that is closest to `name`, if it is close enough to be meant. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  if (name.length > MAX_LENGTH) return undefined
  const wanted = plain(name)
  let best: string | undefined
  let bestDistance = Math.max(1, Math.floor(wanted.length / 3)) + 1
  for (const candidate of known.slice(0, MAX_NAMES)) {
    if (candidate.length > MAX_LENGTH) continue
    const distance = editDistance(wanted, plain(candidate), bestDistance)
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance]
  }
  return best
}

/** Insertions, deletions, replacements and transpositions from `a` to `b`; at most `limit`. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit
  let before: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1
      let least = Math.min(next[j - 1]! + 1, row[j]! + 1, row[j - 1]! + cost)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        least = Math.min(least, before[j - 2]! + 1)
      }
      next.push(least)
    }
    before = row
    row = next
  }
  return Math.min(row[b.length]!, limit)
}
