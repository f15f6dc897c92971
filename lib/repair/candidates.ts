import { OPERATORS } from './operators/all.js'
import type { Clues, OperatorContext, OperatorName, Patch } from './operators/patch.js'
import type { SourceFile } from './source.js'
import { Naturalness } from './naturalness.js'
import type { Suspicion } from './suspicion.js'

/** A patch with its rank and its identity. */
export interface Candidate extends Patch {
  readonly score: number
  readonly line: number
  /** Equal for the same change to the same line, so that no change is tried twice. */
  readonly key: string
}

/** Candidates kept for one state of the sources. */
const MAX_CANDIDATES = 4_000

/**
 * Every patch that the operators propose, most likely first. The order depends only on the input.
 */
export function rankCandidates(
  sources: readonly SourceFile[],
  clues: Clues,
  suspicion: Suspicion,
): Candidate[] {
  const found: Proposal[] = []
  for (const file of sources) {
    let place = 0
    let chance = 1
    const propose = (
      start: number,
      end: number,
      text: string,
      operator: OperatorName,
      weight: number,
      token: number,
    ): void => {
      const score = (place * weight * chance) ** 2 * clues.boost(operator)
      if (score > 0) found.push({ file, start, end, text, operator, weight, token, score })
    }
    const context: OperatorContext = {
      file,
      clues,
      replace: (first, last, text, operator, weight) => {
        const [from, to] = [file.tokens[first], file.tokens[last]]
        if (from !== undefined && to !== undefined)
          propose(from.start, to.end, text, operator, weight, first)
      },
      splice: propose,
    }
    for (let at = 0; at < file.tokens.length; at++) {
      place = suspicion.score(file, at)
      if (place === 0) continue
      for (const [operator, usual] of OPERATORS) {
        chance = usual
        operator(context, at)
      }
    }
  }
  // Several patches can produce the same text: `a - 1` from `a` or from `a + 1`.
  const results = new Map<string, Candidate>()
  for (const { file, ...rest } of likeliest(found, new Naturalness(sources))) {
    if (results.size >= MAX_CANDIDATES) break
    const patch: Patch = { path: file.path, ...rest }
    if (file.text.slice(patch.start, patch.end) === patch.text) continue
    const key = keyOf(file, patch)
    if (results.has(key)) continue
    const line = file.tokens[patch.token]!.line
    results.set(key, { ...patch, score: rest.score, line, key })
  }
  return [...results.values()]
}

/** What an operator proposed, before it is compared with others. */
interface Proposal extends Omit<Patch, 'path'> {
  readonly file: SourceFile
  readonly score: number
}

/** Proposals that are sorted, so that enough are left without those that come twice. */
const MAX_SORTED = 2 * MAX_CANDIDATES
const BUCKETS = 400

/**
 * The proposals with the best scores, best first, without sorting all of them. Those that make the
 * code more like the rest of it come first.
 */
function likeliest(found: readonly Proposal[], naturalness: Naturalness): Proposal[] {
  let kept: readonly Proposal[] = found
  if (found.length > MAX_SORTED) {
    const bucketOf = ({ score }: Proposal): number =>
      Math.max(0, Math.min(BUCKETS - 1, Math.floor(BUCKETS / 2 + 20 * Math.log2(score))))
    const counts = new Array<number>(BUCKETS).fill(0)
    for (const proposal of found) counts[bucketOf(proposal)]!++
    let least = BUCKETS - 1
    for (let sum = counts[least]!; least > 0 && sum < MAX_SORTED; sum += counts[least]!) least--
    kept = found.filter((proposal) => bucketOf(proposal) >= least)
  }
  const compared = kept.map(
    (one) => ({ ...one, score: one.score * naturalness.factor(one.file, one) }),
  )
  return compared.sort(
    (a, b) =>
      b.score - a.score ||
      compare(a.file.path, b.file.path) ||
      a.start - b.start ||
      a.end - b.end ||
      compare(a.text, b.text),
  )
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** Characters of a line on either side of a change that tell it from others. */
const MAX_MARGIN = 400

/** The offset of the changed line and its new text, without trailing blanks. */
function keyOf(file: SourceFile, { path, start, end, text }: Patch): string {
  const from = Math.max(file.text.lastIndexOf('\n', start - 1) + 1, start - MAX_MARGIN)
  const newline = file.text.indexOf('\n', end)
  const to = Math.min(newline < 0 ? file.text.length : newline, end + MAX_MARGIN)
  const line = file.text.slice(from, start) + text + file.text.slice(end, to)
  return `${path}\0${from}\0${to}\0${line.trimEnd()}`
}
