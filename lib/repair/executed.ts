import { namedRegionAt, regionAt } from './outline.js'
import type { SourceFile } from './source.js'
import type { TestedLines, Use } from './trial-report.js'

/** Score of a line that no failing test ran, in a function that one did, and elsewhere. */
const BESIDE = 0.05
const UNREACHED = 0.005
/** Weight of the line itself; the rest is that of its function. */
const OWN = 0.6
/** What a value at the top of a file has of the lines that use it. */
const BY_USE = 0.7
/** Lines of one statement, of which only the first is known to have run. */
const STATEMENT_LINES = 12

/**
 * How suspicious lines are by who ran them: 1 for what all failing tests ran and no other one (A.
 * Ochiai's coefficient, as R. Abreu et al. use it: "On the Accuracy of Spectrum-based Fault
 * Localization", 2007).
 */
export class Executed {
  readonly #tested: TestedLines
  readonly #scores = new Map<SourceFile, readonly number[]>()
  /** The best score of a line that has a name in it. */
  readonly #byName = new Map<string, number>()

  constructor(tested: TestedLines, sources: readonly SourceFile[]) {
    this.#tested = tested
    for (const file of sources) {
      const uses = tested.files.get(file.path)
      if (uses === undefined) continue
      const lines = this.#ofLines(file, uses)
      for (const { kind, text, line } of file.tokens) {
        const score = kind === 'name' ? (lines[line] ?? 0) : 0
        if (score > (this.#byName.get(text) ?? 0)) this.#byName.set(text, score)
      }
    }
  }

  /** From 0 to 1. */
  score(file: SourceFile, token: number): number {
    let scores = this.#scores.get(file)
    if (scores === undefined) this.#scores.set(file, (scores = this.#ofTokens(file)))
    return scores[token] ?? UNREACHED
  }

  /** Failing tests that ran the line of a token, as far as that is known. */
  failing(file: SourceFile, token: number): number | undefined {
    return this.#tested.files.get(file.path)?.get(file.tokens[token]!.line)?.failed
  }

  #ofTokens(file: SourceFile): readonly number[] {
    const lines = this.#ofLines(file, this.#tested.files.get(file.path) ?? new Map())
    const used = this.#ofValues(file)
    const best = new Map<number, number>()
    const regions = file.tokens.map((_, at) => namedRegionAt(file.regions, at))
    file.tokens.forEach(({ line }, at) => {
      const region = regions[at]!
      best.set(region, Math.max(best.get(region) ?? 0, lines[line] ?? 0))
    })
    return file.tokens.map(({ line }, at) => {
      const around = best.get(regions[at]!) ?? 0
      const own = lines[line] ?? 0
      if (own === 0) return Math.max(UNREACHED, used[at]!, BESIDE * around)
      return OWN * own + (1 - OWN) * around
    })
  }

  /** By token: what is computed once, when a file is loaded, counts where it is used. */
  #ofValues(file: SourceFile): readonly number[] {
    const scores = file.tokens.map(() => 0)
    const ends = [...file.statements.slice(1), file.tokens.length]
    const declared = new Map<number, number>()
    let statement = 0
    const inOrder = file.declarations
      .filter(({ region }) => region === -1)
      .sort((a, b) => a.token - b.token)
    for (const { name, token } of inOrder) {
      while (statement < ends.length - 1 && ends[statement]! <= token) statement += 1
      const score = BY_USE * (this.#byName.get(name) ?? 0)
      if (score > (declared.get(statement) ?? 0)) declared.set(statement, score)
    }
    for (const [at, score] of declared) {
      for (let token = file.statements[at] ?? 0; token < ends[at]!; token++)
        if (regionAt(file.regions, token) === -1) scores[token] = score
    }
    return scores
  }

  /** By line; the further lines of a statement have what its first has. */
  #ofLines(file: SourceFile, uses: ReadonlyMap<number, Use>): readonly number[] {
    const all = Math.max(1, this.#tested.failed)
    const lines: number[] = []
    const last = file.tokens.at(-1)?.line ?? 0
    let [known, since] = [0, Infinity]
    const python = file.language === 'python'
    for (let line = 1; line <= last; line++) {
      const use = uses.get(line)
      since += 1
      if (use !== undefined) {
        known = use.failed / Math.sqrt(all * (use.failed + use.passed))
        since = 0
      }
      lines[line] = use !== undefined || (python && since < STATEMENT_LINES) ? known : 0
    }
    // What a case is compared with has run, though what follows it may not have.
    let before = 0
    for (const { text, first, line } of file.tokens) {
      if (first && text === 'case') lines[line] = Math.max(lines[line] ?? 0, before)
      else before = (lines[line] ?? 0) || before
    }
    return lines
  }
}
