import type { Candidate } from './candidates.js'
import type { TestCommand } from './check.js'
import { namedRegionAt } from './outline.js'
import type { Outcomes } from './report.js'
import type { SourceFile } from './source.js'
import type { Suspicion } from './suspicion.js'

/** Patches of the first calls of a pursuit: few, since the best ones often come first. */
export const BATCHES: readonly number[] = [6, 12, 20, 32]
/** Patches of the same function that get a chance after one that helped only some of its tests. */
const MAX_NEAR_RIVALS = 60
const MAX_FAR_RIVALS = 8
/** Tests that one command runs by name. */
const MAX_NAMED_TESTS = 20

/** The search for patches that fix the tests of one file, at one state of the sources. */
export interface Pursuit {
  /** Ways to run these tests, the fastest first; one that does not do it is dropped. */
  readonly commands: string[]
  readonly suspicion: Suspicion
  /** Candidates that helped at an earlier state, for which the whole check has yet to run. */
  likely: readonly Candidate[]
  candidates: readonly Candidate[]
  /** Number of candidates tried so far. */
  at: number
  round: number
}

/** A patch that made `gained` more tests pass, of `failing` ones that the command ran. */
export interface Winner {
  readonly candidate: Candidate
  readonly gained: number
  readonly failing: number
  /** Names of tests that passed with it; none where they are not known. */
  readonly repaired: readonly string[]
}

/** The failing tests alone where most others pass, then all tests of the file. */
export function commandsFor(
  ways: readonly TestCommand[],
  failing: readonly string[],
  all: Outcomes,
): string[] {
  const few = failing.length <= MAX_NAMED_TESTS && 2 * failing.length <= all.size
  const alone = few ? ways.flatMap(({ only }) => only?.(failing) ?? []) : []
  return [...alone, ...ways.map(({ outcomes }) => outcomes)]
}

/**
 * Winners in different files that repair different tests, each all that a right patch repairs:
 * `wanted` tells how many. The best of all is one of them, if there are several.
 */
export function teamOf(
  winners: readonly Winner[],
  wanted: (winner: Winner) => number,
): readonly Winner[] {
  const team: Winner[] = []
  const paths = new Set<string>()
  const tests = new Set<string>()
  for (const winner of winners) {
    const { candidate, gained, repaired } = winner
    const isKnown = repaired.length > 0 && gained >= wanted(winner)
    const isOther = !paths.has(candidate.path) && !repaired.some((name) => tests.has(name))
    if (isKnown && isOther) {
      team.push(winner)
      paths.add(candidate.path)
      for (const name of repaired) tests.add(name)
    } else if (team.length === 0) return []
  }
  return team
}

/** Removes the patches that compete with `candidate` from a pursuit and returns them. */
export function takeRivals(
  pursuit: Pursuit,
  candidate: Candidate,
  file: SourceFile,
): readonly Candidate[] {
  const region = namedRegionAt(file.regions, candidate.token)
  const ahead = pursuit.candidates.slice(pursuit.at)
  const isNear = ({ path, token }: Candidate): boolean =>
    path === candidate.path && namedRegionAt(file.regions, token) === region
  const near = ahead.filter(isNear).slice(0, MAX_NEAR_RIVALS)
  const far = ahead.filter((rival) => !isNear(rival)).slice(0, MAX_FAR_RIVALS)
  const taken = new Set([...near, ...far])
  pursuit.candidates = [
    ...pursuit.candidates.slice(0, pursuit.at),
    ...ahead.filter((rival) => !taken.has(rival)),
  ]
  return [...taken]
}
