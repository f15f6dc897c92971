import type { Candidate } from './candidates.js'
import type { Outcomes } from './report.js'
import { namedRegionAt } from './outline.js'
import type { SourceFile } from './source.js'
import type { Suspicion } from './suspicion.js'

/** Patches tried in the first turns of a pursuit: few, since the best ones often come first. */
export const BATCHES: readonly number[] = [3, 5, 7]
/** Patches of the same function that get a chance after one that helped only some of its tests. */
const MAX_NEAR_RIVALS = 84
const MAX_FAR_RIVALS = 14

/** The search for patches that fix the tests of one file, at one state of the sources. */
export interface Pursuit {
  /** Runs the tests of the file. */
  readonly command: string
  readonly timeout: number
  readonly baseline: Outcomes
  readonly suspicion: Suspicion
  candidates: readonly Candidate[]
  /** Number of candidates tried so far. */
  at: number
  round: number
}

/** A patch that made `gained` more tests pass. */
export interface Winner {
  readonly candidate: Candidate
  readonly gained: number
}

/** Removes the patches that compete with `candidate` from a pursuit and returns them in batches. */
export function takeRivals(
  pursuit: Pursuit,
  candidate: Candidate,
  file: SourceFile,
): (readonly Candidate[])[] {
  const region = namedRegionAt(file.regions, candidate.token)
  const ahead = pursuit.candidates.slice(pursuit.at)
  const isNear = ({ path, token }: Candidate): boolean =>
    path === candidate.path && namedRegionAt(file.regions, token) === region
  const near = ahead.filter(isNear).slice(0, MAX_NEAR_RIVALS)
  const taken = new Set([
    ...near,
    ...ahead.filter((rival) => !isNear(rival)).slice(0, MAX_FAR_RIVALS),
  ])
  pursuit.candidates = [
    ...pursuit.candidates.slice(0, pursuit.at),
    ...ahead.filter((rival) => !taken.has(rival)),
  ]
  const rivals = [...taken]
  const size = BATCHES.at(-1)!
  return Array.from({ length: Math.ceil(rivals.length / size) }, (_, i) =>
    rivals.slice(i * size, (i + 1) * size),
  )
}
