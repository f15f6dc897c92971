import type { Failure, Outcomes } from './report.js'
import { namedRegionAt, type Region } from './outline.js'
import { Executed } from './executed.js'
import type { SourceFile } from './source.js'
import { stringBody } from './token.js'
import type { TestedLines } from './trial-report.js'

/** Where the cause of the failures may be. */
export interface Suspicion {
  /** Relative likelihood that the cause is at this token, from 0 up. */
  score(file: SourceFile, token: number): number
  /** Number of failing tests that are known to reach the function around a token. */
  failing(file: SourceFile, token: number): number
}

/** Score of code that no failing test is known to reach. */
const UNREACHED = 0.04
/** Factor for each further call between test and code. */
const PER_CALL = 0.85
const MAX_DEPTH = 6
/** Weight of execution beside that of names, which is 0 to 2. */
const BY_EXECUTION = 0.5

interface TestCase {
  readonly title: string
  readonly names: ReadonlySet<string>
  readonly firstLine: number
  readonly lastLine: number
}

/**
 * Scores code by its distance from failing tests in calls and by stack traces. Functions that
 * passing tests also call score lower.
 */
export function rankPlaces(
  sources: readonly SourceFile[],
  tests: readonly SourceFile[],
  failures: readonly Failure[],
  outcomes: Outcomes,
  tested: TestedLines | null = null,
): Suspicion {
  const byName = new Map<string, { file: SourceFile; region: Region }[]>()
  for (const file of sources) {
    for (const region of file.regions) {
      for (const name of namesOf(region)) {
        const known = byName.get(name)
        if (known === undefined) byName.set(name, [{ file, region }])
        else known.push({ file, region })
      }
    }
  }
  const titles = new Set([...outcomes.keys()].map(lastPart))
  const failing: Map<Region, number>[] = []
  const passing = new Map<Region, number>()
  for (const testCase of tests.flatMap(testCases)) {
    const failed = failures.some((failure) => isOf(testCase, failure))
    const known = failed || titles.has(lastPart(testCase.title))
    const reached = reach(testCase.names, byName)
    if (failed) failing.push(reached)
    else if (known)
      for (const [region, weight] of reached)
        passing.set(region, (passing.get(region) ?? 0) + weight)
  }
  // By how many failing tests each is reached.
  const counts = new Map<Region, number>()
  for (const reached of failing)
    for (const region of reached.keys()) counts.set(region, (counts.get(region) ?? 0) + 1)
  const scores = new Map<Region, number>()
  for (const reached of failing) {
    for (const [region, weight] of reached) {
      // Code that many failing tests share is more likely the cause of all of them.
      const share = counts.get(region)! / failing.length
      const score = (weight * (0.5 + 0.7 * share)) / (1 + 0.2 * (passing.get(region) ?? 0))
      scores.set(region, Math.max(scores.get(region) ?? 0, score))
    }
  }
  const lines = new Map<string, Map<number, number>>()
  for (const { frames } of failures) {
    let rank = 0
    for (const frame of frames) {
      const file = sources.find(({ path }) => isSameFile(frame.file, path))
      if (file === undefined) continue
      const share = 0.7 ** rank++
      const known = lines.get(file.path) ?? new Map<number, number>()
      known.set(frame.line, Math.max(known.get(frame.line) ?? 0, share))
      lines.set(file.path, known)
      const token = file.tokens.findIndex(({ line }) => line >= frame.line)
      const region = file.regions[namedRegionAt(file.regions, Math.max(0, token))]
      if (region !== undefined) scores.set(region, Math.max(scores.get(region) ?? 0, 1.3 * share))
    }
  }
  const executed = tested === null ? null : new Executed(tested, sources)
  const regionOf = (file: SourceFile, token: number): Region | undefined =>
    file.regions[namedRegionAt(file.regions, token)]
  return {
    score: (file, token) => {
      const region = regionOf(file, token)
      const score = region === undefined ? 0 : (scores.get(region) ?? 0)
      const line = lines.get(file.path)?.get(file.tokens[token]!.line) ?? 0
      const least = scores.size === 0 ? 0.3 : region === undefined ? 2 * UNREACHED : UNREACHED
      const place = Math.max(score, least) * (1 + 1.5 * line)
      // Where execution is known, what calls what by name only decides between equals.
      return executed === null
        ? place
        : executed.score(file, token) * (BY_EXECUTION + Math.min(place, 1 + line))
    },
    failing: (file, token) => {
      const region = regionOf(file, token)
      if (region === undefined) return 0
      // Of the tests that reach the function, those that ran the line.
      return Math.min(counts.get(region) ?? 0, executed?.failing(file, token) ?? Infinity)
    },
  }
}

/** What two names of the same test end with. */
function lastPart(name: string): string {
  return name.split(/ > |::|\./).at(-1)!.replace(/\[.*/, '')
}

/** A constructor is called by the name of its class. */
function namesOf(region: Region): string[] {
  if (region.name === '') return []
  const constructs = region.name === 'constructor' || region.name === '__init__'
  return constructs && region.owner !== '' ? [region.owner] : [region.name]
}

/** Whether a path printed in a trace is that of this file of the workspace. */
function isSameFile(printed: string, path: string): boolean {
  const clean = printed
    .replace(/^file:\/\//, '')
    .replace(/\\/g, '/')
    .replace(/^\.\//, '')
  return clean === path || clean.endsWith(`/${path}`)
}

function isOf(testCase: TestCase, { name, at }: Failure): boolean {
  if (
    name.split(' > ').at(-1) === testCase.title ||
    name.split(/::|\./).at(-1)?.replace(/\[.*/, '') === testCase.title
  )
    return true
  return at !== undefined && testCase.firstLine <= at.line && at.line <= testCase.lastLine
}

function reach(
  names: ReadonlySet<string>,
  byName: ReadonlyMap<string, readonly { readonly file: SourceFile; readonly region: Region }[]>,
): Map<Region, number> {
  const found = new Map<Region, number>()
  let front: ReadonlySet<string> = names
  const seen = new Set<string>()
  for (let depth = 0; depth < MAX_DEPTH && front.size > 0; depth++) {
    const next = new Set<string>()
    for (const name of front) {
      if (seen.has(name)) continue
      seen.add(name)
      for (const { file, region } of byName.get(name) ?? []) {
        if (found.has(region)) continue
        found.set(region, PER_CALL ** depth)
        for (const used of namesIn(file, region.first, region.last)) next.add(used)
      }
    }
    front = next
  }
  return found
}

function namesIn(file: SourceFile, first: number, last: number): Set<string> {
  const names = new Set<string>()
  for (let at = first; at <= last; at++) {
    const token = file.tokens[at]!
    if (token.kind === 'name') names.add(token.text)
    // Names inside a Python f-string count as well.
    if (token.kind === 'string' && /^[rb]?f/i.test(token.text)) {
      for (const found of token.text.matchAll(/\{[^{}]*\}/g))
        for (const [name] of found[0].matchAll(/[A-Za-z_]\w*/g)) names.add(name)
    }
  }
  return names
}

/** The tests of a test file, with the names that each uses directly or through helpers. */
function testCases(file: SourceFile): TestCase[] {
  const python = file.language === 'python'
  const ranges: { title: string; first: number; last: number }[] = []
  const shared = new Set<string>()
  if (python) {
    for (const { name, first, last, kind } of file.regions) {
      if (kind !== 'function') continue
      if (name.startsWith('test')) ranges.push({ title: name, first, last })
      else if (/^set_?up/i.test(name))
        for (const used of namesIn(file, first, last)) shared.add(used)
    }
  } else {
    file.tokens.forEach((token, at) => {
      if (token.kind !== 'name') return
      const next = file.tokens.slice(at + 1, at + 4).findIndex(({ text }) => text === '(')
      const open = at + 1 + next
      if (next < 0 || file.tokens[open]!.match < 0) return
      const range = { first: open, last: file.tokens[open]!.match }
      if (token.text === 'test' || token.text === 'it') {
        const title = file.tokens[open + 1]
        const body = title?.kind === 'string' ? (stringBody(title.text)?.body ?? '') : ''
        ranges.push({ title: body.replace(/\\(.)/g, '$1'), ...range })
      } else if (token.text === 'beforeEach' || token.text === 'before') {
        for (const used of namesIn(file, range.first, range.last)) shared.add(used)
      }
    })
  }
  return ranges.map(({ title, first, last }) => {
    const names = namesIn(file, first, last)
    // Strings count as well, for tables of method names and names of exports.
    for (let round = 0; round < 3; round++) {
      for (const region of file.regions) {
        if (
          region.name === '' ||
          !names.has(region.name) ||
          (region.first >= first && region.last <= last)
        )
          continue
        for (const used of namesIn(file, region.first, region.last)) names.add(used)
      }
    }
    for (const used of shared) names.add(used)
    return { title, names, firstLine: file.tokens[first]!.line, lastLine: file.tokens[last]!.line }
  })
}
