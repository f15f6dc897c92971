import { type Candidate, rankCandidates } from '../../lib/repair/candidates.js'
import { readClues } from '../../lib/repair/clues.js'
import { applyPatch } from '../../lib/repair/edit.js'
import { parseSource } from '../../lib/repair/source.js'

const evenly = { score: () => 1, failing: () => 0 }

export function candidatesFor(path: string, text: string): readonly Candidate[] {
  const source = parseSource(path, text)!
  return rankCandidates([source], readClues([], [source], []), evenly)
}

/** Ignores spaces, braces and semicolons, which do not matter here, but no line of Python. */
function plain(path: string, text: string): string {
  if (!path.endsWith('.py')) return text.replace(/[\s;{}]+/g, '')
  return text.replace(/ +$/gm, '').replace(/\n{2,}/g, '\n')
}

/** Rank, from 1, of the candidate that makes `wanted` from `broken`; 0 when there is none. */
export function rankOf(path: string, broken: string, wanted: string): number {
  const expected = plain(path, wanted)
  return (
    1 +
    candidatesFor(path, broken).findIndex(
      (candidate) => plain(path, applyPatch(broken, candidate)) === expected,
    )
  )
}
