import { OPERATORS } from './operators/all.js'
import type { Clues, OperatorContext, OperatorName, Patch } from './operators/patch.js'
import type { SourceFile } from './source.js'
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
  const found = new Map<string, Candidate>()
  for (const file of sources) {
    for (let at = 0; at < file.tokens.length; at++) {
      const place = suspicion.score(file, at)
      const propose = (
        start: number,
        end: number,
        text: string,
        operator: OperatorName,
        weight: number,
        token: number,
      ): void => {
        if (file.text.slice(start, end) === text || weight <= 0) return
        const patch: Patch = { path: file.path, start, end, text, operator, weight, token }
        const id = `${file.path}\0${start}\0${end}\0${text}`
        const score = place * weight * clues.boost(operator)
        const known = found.get(id)
        if (known !== undefined && known.score >= score) return
        found.set(id, { ...patch, score, line: file.tokens[token]!.line, key: keyOf(file, patch) })
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
      for (const operator of OPERATORS) operator(context, at)
    }
  }
  // Several patches can produce the same text: `a - 1` from `a` or from `a + 1`.
  const results = new Map<string, Candidate>()
  for (const candidate of found.values()) {
    const known = results.get(candidate.key)
    if (known === undefined || known.score < candidate.score) results.set(candidate.key, candidate)
  }
  return [...results.values()]
    .sort(
      (a, b) =>
        b.score - a.score ||
        compare(a.path, b.path) ||
        a.start - b.start ||
        a.end - b.end ||
        compare(a.text, b.text),
    )
    .slice(0, MAX_CANDIDATES)
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** The offset of the changed line and its new text, without trailing blanks. */
function keyOf(file: SourceFile, { path, start, end, text }: Patch): string {
  const from = file.text.lastIndexOf('\n', start - 1) + 1
  const newline = file.text.indexOf('\n', end)
  const to = newline < 0 ? file.text.length : newline
  const line = file.text.slice(from, start) + text + file.text.slice(end, to)
  return `${path}\0${from}\0${to}\0${line.trimEnd()}`
}
