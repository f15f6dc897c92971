import { bash, edit, read } from './calls.js'
import { type Candidate, rankCandidates } from './candidates.js'
import {
  afterChange,
  type CheckPlan,
  exitCodeOnly,
  limited,
  parseTimes,
  planCheck,
  scriptsOf,
  type TestCommand,
  timed,
} from './check.js'
import { readClues } from './clues.js'
import type { CallResult, Plan, PlannedCall, PlannedTurn, Reply } from './conversation.js'
import { applyPatch, editOf } from './edit.js'
import { failingFiles, importsOf, isReadablePath, isSourcePath, isTestPath } from './files.js'
import { BATCHES, type Pursuit, takeRivals, type Winner } from './pursuit.js'
import { parseFailures, parseOutcomes } from './read-report.js'
import { agrees, isProgress, isSameOutcome, type Outcomes, passCount } from './report.js'
import { languageOf, parseSource, type SourceFile } from './source.js'
import { rankPlaces } from './suspicion.js'

/** The frozen facts of the run that the search depends on. */
export interface SearchFacts {
  readonly check: string | null
  readonly cwd: string
  readonly tools: readonly string[]
  /** Whether a file belongs to the check of the run as far as is known now; more may be found. */
  readonly isCheckFile: (path: string) => boolean
}

/** Calls of a turn that reads files; trying the largest batch of patches takes as many. */
const MAX_CALLS = 22
/** Files after which a run reads no more. */
const MAX_FILES = 120
/** A larger file is not repaired, because `read_file` truncates it. */
const MAX_FILE_BYTES = 60_000
/** Patches after which a run gives up. */
const MAX_TRIALS = 4_000
/** CPU seconds for each process of a test run, until the actual time is known. */
const WHOLE_CPU_SECONDS = 120
/** The same for tests that already run into an endless loop. */
const ENDLESS_CPU_SECONDS = 5
/** Patches tried for one test file before the next one gets a turn. */
const SHARE = 100
/** Tests that one command runs by name. */
const MAX_NAMED_TESTS = 20
const FILE_TIMEOUT_MS = 20_000
const WHOLE_TIMEOUT_MS = 300_000

/**
 * Generate and validate: reads the failing tests, ranks small patches, tries them one by one, keeps
 * those that make strictly more tests pass and none fail, and reverts the others.
 *
 * 1. Between two turns the files contain the kept patches and no other change.
 * 2. Test files, and whatever else belongs to the check, are never written.
 * 3. No patch is tried twice on the same state of the sources.
 */
export class Search {
  readonly #facts: SearchFacts
  #plan: CheckPlan | null = null
  #paths: readonly string[] = []
  /** Contents of the files read so far. */
  readonly #texts = new Map<string, string>()
  readonly #parsed = new Map<string, SourceFile>()
  /** Outcome of every test at the current state. */
  #outcomes: Outcomes = new Map()
  #wholeOutput = ''
  /** Failing test files for which nothing is left to try at the current state. */
  readonly #exhausted = new Set<string>()
  readonly #pursuits = new Map<string, Pursuit>()
  /** Patches tried at an earlier state, which are tried again last. */
  readonly #triedBefore = new Set<string>()
  #trials = 0
  #kept: string[] = []
  /** Set by a message of the engine or of a person: files and tests may have changed. */
  #interrupted = false

  constructor(facts: SearchFacts) {
    this.#facts = facts
  }

  *run(): Plan {
    const problem = this.#unsuitable()
    while (problem !== null)
      yield { text: `No candidate left: ${problem}`, calls: [], givesUp: true }
    yield* this.#open()
    for (;;) {
      const failing = this.#failing()
      if (failing.length === 0) yield* this.#claim()
      else if (this.#trials >= MAX_TRIALS) yield* this.#giveUp(failing)
      else {
        const focus = this.#nextFocus(failing)
        if (focus === undefined) yield* this.#giveUp(failing)
        else yield* this.#pursue(focus)
      }
    }
  }

  #unsuitable(): string | null {
    if (this.#facts.check === null)
      return 'this goal has no check command, and a repair is judged by nothing else.'
    const lacking = ['bash', 'read_file', 'edit_file', 'list_files'].filter(
      (tool) => !this.#facts.tools.includes(tool),
    )
    return lacking.length === 0
      ? null
      : `the tools ${lacking.join(', ')} are not offered, and repair needs them.`
  }

  /** May be changed. */
  readonly #isSource = (path: string): boolean =>
    isSourcePath(path) && !this.#facts.isCheckFile(path)

  /** Tells what is wanted. */
  readonly #isTest = (path: string): boolean => isTestPath(path) || this.#facts.isCheckFile(path)

  #failing(): string[] {
    return [...this.#outcomes].flatMap(([name, outcome]) => (outcome === 'fail' ? [name] : []))
  }

  /** Yields a turn with calls, and records whether the reply contains messages. */
  *#ask(
    text: string,
    calls: readonly PlannedCall[],
  ): Generator<PlannedTurn, readonly CallResult[], Reply> {
    const reply = yield { text, calls }
    if (reply.notes.length > 0) this.#interrupted = true
    return reply.results
  }

  /** Lists the files, recognizes the check and runs it. */
  *#open(): Generator<PlannedTurn, void, Reply> {
    const usesScripts = /\b(npm|pnpm|yarn)\b/.test(this.#facts.check!)
    const listing: PlannedCall[] = [{ tool: 'list_files', args: { recursive: true } }]
    if (usesScripts) listing.push({ tool: 'read_file', args: { path: 'package.json' } })
    const [list, manifest] = yield* this.#ask('Looking at the files of the project.', listing)
    this.#paths = list!.output
      .split('\n')
      .map((path) => path.trim().replace(/^\.\//, ''))
      .filter((path) => path !== '' && !path.endsWith('/') && isReadablePath(path))
    this.#plan = planCheck(this.#facts.check!, scriptsOf(manifest?.output ?? ''))
    yield* this.#measure('Running the check to see which tests fail.')
    if (this.#outcomes.size > 0) return
    // The output has no report of the expected kind, so only the exit code counts.
    this.#plan = exitCodeOnly(this.#facts.check!)
    yield* this.#measure('The check gives no report that can be read; going by its exit code.')
  }

  *#measure(text: string): Generator<PlannedTurn, void, Reply> {
    const [result] = yield* this.#ask(text, [
      bash(limited(this.#plan!.whole.outcomes, WHOLE_CPU_SECONDS), WHOLE_TIMEOUT_MS),
    ])
    this.#outcomes = parseOutcomes(this.#plan!.kind, result!.output, result!.exitCode)
    this.#wholeOutput = result!.output
  }

  /** The next test file to work on; null for the whole check; undefined when all are exhausted. */
  #nextFocus(failing: readonly string[]): string | null | undefined {
    const plan = this.#plan!
    const known =
      plan.file('').length === 0
        ? []
        : failingFiles(plan.kind, this.#wholeOutput, failing, this.#paths)
    const open = (known.length === 0 ? [''] : known).filter((path) => !this.#exhausted.has(path))
    // In shares, so that a hard bug does not keep easy ones waiting.
    const share = (path: string): number => Math.floor((this.#pursuits.get(path)?.at ?? 0) / SHARE)
    const [next] = open.sort((a, b) => share(a) - share(b) || (a < b ? -1 : 1))
    return next === undefined ? undefined : next || null
  }

  /** Reads what one test file needs and ranks patches for it; null when it cannot be run. */
  *#begin(focus: string | null): Generator<PlannedTurn, Pursuit | null, Reply> {
    const plan = this.#plan!
    const timeout = focus === null ? WHOLE_TIMEOUT_MS : FILE_TIMEOUT_MS
    const first = focus === null ? this.#paths.filter(this.#isTest).slice(0, 20) : [focus]
    for (const command of focus === null ? [plan.whole] : plan.file(focus)) {
      const details = yield* this.#load(
        first,
        bash(timed(limited(command.details, WHOLE_CPU_SECONDS)), timeout),
      )
      const baseline = parseOutcomes(plan.kind, details.output, details.exitCode)
      if (![...baseline.values()].includes('fail')) continue
      if (command.isShortcut === true && !agrees(baseline, this.#outcomes)) continue
      const failures = parseFailures(plan.kind, details.output)
      const reachable = focus === null ? [] : this.#withImports(focus)
      const isReachable = reachable.some(this.#isSource)
      const sources = this.#files(
        (path) => this.#isSource(path) && (!isReachable || reachable.includes(path)),
      )
      const tests = this.#files(
        (path) => this.#isTest(path) && (reachable.includes(path) || first.includes(path)),
      )
      const suspicion = rankPlaces(sources, tests, failures, baseline)
      const candidates = rankCandidates(sources, readClues(failures, sources, tests), suspicion)
        .map((candidate) =>
          this.#triedBefore.has(candidate.key)
            ? { ...candidate, score: candidate.score / 3 }
            : candidate,
        )
        .sort((a, b) => b.score - a.score)
      this.#interrupted = false
      // An endless loop should cost no more than a few runs of these tests.
      const wasEndless = details.exitCode === 124 || details.exitCode > 128
      const usual = Math.ceil(0.6 + 4 * (parseTimes(details.output) ?? 2))
      const cpuSeconds = wasEndless ? ENDLESS_CPU_SECONDS : Math.min(WHOLE_CPU_SECONDS, usual)
      const whole = { command: limited(command.outcomes, cpuSeconds), baseline }
      return {
        ...(yield* this.#narrow(whole, command, cpuSeconds, timeout)),
        timeout,
        suspicion,
        candidates,
        at: 0,
        round: 0,
      }
    }
    return null
  }

  /**
   * Returns a command for the failing tests alone if most of a file's tests pass, since a patch has
   * to pass the whole check in the end. Else returns the given command.
   */
  *#narrow(
    whole: Pick<Pursuit, 'command' | 'baseline'>,
    command: TestCommand,
    cpuSeconds: number,
    timeout: number,
  ): Generator<PlannedTurn, Pick<Pursuit, 'command' | 'baseline'>, Reply> {
    const failing = [...whole.baseline].flatMap(([name, outcome]) =>
      outcome === 'fail' ? [name] : [],
    )
    const few = failing.length <= MAX_NAMED_TESTS && 2 * failing.length <= whole.baseline.size
    const alone = few ? command.only?.(failing) : undefined
    if (alone === undefined) return whole
    const line = limited(alone, cpuSeconds)
    const [result] = yield* this.#ask('Running the failing tests alone.', [bash(line, timeout)])
    const baseline = parseOutcomes(this.#plan!.kind, result!.output, result!.exitCode)
    const same = baseline.size === failing.length && agrees(baseline, whole.baseline)
    return same ? { command: line, baseline } : whole
  }

  /** Tries the next patches for one test file. */
  *#pursue(focus: string | null): Generator<PlannedTurn, void, Reply> {
    const id = focus ?? ''
    const pursuit = this.#pursuits.get(id) ?? (yield* this.#begin(focus))
    if (pursuit === null || pursuit.at >= pursuit.candidates.length) {
      this.#exhausted.add(id)
      return
    }
    this.#pursuits.set(id, pursuit)
    const size = BATCHES[Math.min(pursuit.round++, BATCHES.length - 1)]!
    const batch = pursuit.candidates.slice(pursuit.at, pursuit.at + size)
    pursuit.at += batch.length
    const winners = yield* this.#try(batch, pursuit)
    if (winners === null || winners.length === 0) return
    // A patch that fixes only some of its function's failing tests may do so by coincidence: other
    // patches, of this function first, get a chance to do better.
    const { candidate, gained } = winners[0]!
    const file = this.#parsed.get(candidate.path)!
    const wanted = pursuit.suspicion.failing(file, candidate.token)
    if (gained < wanted) {
      for (const rivals of takeRivals(pursuit, candidate, file)) {
        const better = yield* this.#try(rivals, pursuit)
        if (better === null) return
        winners.push(...better)
        if (better.some((rival) => rival.gained >= wanted)) break
      }
      winners.sort((a, b) => b.gained - a.gained || b.candidate.score - a.candidate.score)
    }
    for (const winner of winners) if (yield* this.#keep(winner.candidate)) return
  }

  /**
   * Tries patches in one turn: applies each, runs the tests and reverts it. Returns those that
   * help, best first; or null, after a resync, when something else changed in the meantime.
   */
  *#try(
    batch: readonly Candidate[],
    { command, timeout, baseline }: Pursuit,
  ): Generator<PlannedTurn, Winner[] | null, Reply> {
    const calls: PlannedCall[] = []
    // After an interruption the unpatched state is run as well, since it may have changed.
    const checksState = this.#interrupted
    this.#interrupted = false
    if (checksState) calls.push(bash(command, timeout))
    for (const candidate of batch) {
      const { oldText, newText } = editOf(this.#texts.get(candidate.path)!, candidate)
      calls.push(
        edit(candidate.path, oldText, newText),
        bash(afterChange(candidate.path, command), timeout),
        edit(candidate.path, newText, oldText),
      )
    }
    const failing = this.#failing()
    const some = failing.slice(0, 3).join('; ') + (failing.length > 3 ? '; …' : '')
    const results = yield* this.#ask(
      `${failing.length} of ${this.#outcomes.size} tests fail (${some}). ` +
        `Trying ${batch.length} ${batch.length === 1 ? 'patch' : 'patches'}, ` +
        'each taken back again:\n' +
        batch.map((candidate) => `- ${this.#describe(candidate)}`).join('\n'),
      calls,
    )
    this.#trials += batch.length
    for (const { key } of batch) this.#triedBefore.add(key)
    const kind = this.#plan!.kind
    const skipped = checksState ? 1 : 0
    let disturbed = false
    if (checksState) {
      const { output, exitCode } = results[0]!
      disturbed = !isSameOutcome(parseOutcomes(kind, output, exitCode), baseline)
    }
    const winners: Winner[] = []
    batch.forEach((candidate, index) => {
      const [made, ran, undone] = results.slice(skipped + 3 * index) as [
        CallResult,
        CallResult,
        CallResult,
      ]
      if (made.exitCode !== 0 || undone.exitCode !== 0) disturbed = true
      const after = parseOutcomes(kind, ran.output, ran.exitCode)
      if (isProgress(baseline, after))
        winners.push({ candidate, gained: passCount(after) - passCount(baseline) })
    })
    if (!disturbed) return winners.sort((a, b) => b.gained - a.gained)
    yield* this.#resync()
    return null
  }

  /** Applies a patch that helped its test file for good, unless the whole check regresses. */
  *#keep(candidate: Candidate): Generator<PlannedTurn, boolean, Reply> {
    const { path } = candidate
    const text = this.#texts.get(path)!
    const { oldText, newText } = editOf(text, candidate)
    const what = this.#describe(candidate)
    const [made, whole] = yield* this.#ask(
      `More tests pass with ${what}. Making it again and running the whole check.`,
      [
        edit(path, oldText, newText),
        bash(
          afterChange(path, limited(this.#plan!.whole.outcomes, WHOLE_CPU_SECONDS)),
          WHOLE_TIMEOUT_MS,
        ),
      ],
    )
    const after = parseOutcomes(this.#plan!.kind, whole!.output, whole!.exitCode)
    if (made!.exitCode === 0 && isProgress(this.#outcomes, after)) {
      this.#remember(path, applyPatch(text, candidate))
      this.#outcomes = after
      this.#wholeOutput = whole!.output
      this.#exhausted.clear()
      this.#pursuits.clear()
      this.#kept.push(what)
      return true
    }
    const [undone] = yield* this.#ask(
      'The whole check is not better for it: taking the patch back.',
      [edit(path, newText, oldText)],
    )
    if (made!.exitCode === 0 && undone!.exitCode === 0) return false
    yield* this.#resync()
    return true
  }

  /** Called when all tests pass: a turn without calls lets the engine check the goal. */
  *#claim(): Generator<PlannedTurn, void, Reply> {
    const kept =
      this.#kept.length === 0 ? '' : ` Kept:\n${this.#kept.map((what) => `- ${what}`).join('\n')}`
    yield {
      text:
        `All ${this.#outcomes.size} tests pass now. ` +
        `They pass; whether the code is right beyond them, no check can tell.${kept}`,
      calls: [],
    }
    // Resumed, so the goal is not met although the tests pass: only the exit code counts from here.
    const before = this.#plan!.kind
    yield* this.#resync()
    if (this.#failing().length > 0) return
    if (before !== 'any') {
      this.#plan = exitCodeOnly(this.#facts.check!)
      yield* this.#measure(
        'The goal is not met although every test passes; going by the exit code of the check.',
      )
      if (this.#failing().length > 0) return
    }
    yield {
      text:
        'No candidate left: the check passes as run here, ' +
        `so there is no failure to work on.${kept}`,
      calls: [],
      givesUp: true,
    }
    yield* this.#resync()
  }

  *#giveUp(failing: readonly string[]): Generator<PlannedTurn, void, Reply> {
    const kept =
      this.#kept.length === 0
        ? 'No patch helped.'
        : `Kept, because they help:\n${this.#kept.map((what) => `- ${what}`).join('\n')}`
    yield {
      text:
        `No candidate left: ${this.#trials} patches were tried, and ` +
        `${failing.length} of ${this.#outcomes.size} tests still fail ` +
        `(${failing.slice(0, 5).join('; ')}${failing.length > 5 ? '; …' : ''}). ${kept}`,
      calls: [],
      givesUp: true,
    }
    yield* this.#resync()
  }

  /** Reads the files again and runs the check, because the state may have changed. */
  *#resync(): Generator<PlannedTurn, void, Reply> {
    const paths = [...this.#texts.keys()].filter(this.#isSource)
    const before = JSON.stringify([...this.#outcomes])
    let changed = false
    for (let at = 0; at < paths.length; at += MAX_CALLS) {
      const part = paths.slice(at, at + MAX_CALLS)
      const results = yield* this.#ask('Reading the sources again.', part.map(read))
      part.forEach((path, index) => {
        const { output, exitCode } = results[index]!
        if (exitCode !== 0 || output === this.#texts.get(path)) return
        changed = true
        this.#remember(path, output)
      })
    }
    yield* this.#measure('Running the check again.')
    this.#pursuits.clear()
    if (changed || JSON.stringify([...this.#outcomes]) !== before) this.#exhausted.clear()
    this.#interrupted = false
  }

  /** Reads files and their imports. Runs `extra` in the first turn and returns its result. */
  *#load(first: readonly string[], extra: PlannedCall): Generator<PlannedTurn, CallResult, Reply> {
    let extraResult: CallResult | undefined
    const sources = this.#paths.filter(this.#isSource)
    let wanted = sources.length <= MAX_CALLS - 2 ? [...first, ...sources] : [...first]
    for (;;) {
      const missing = [...new Set(wanted)]
        .filter((path) => !this.#texts.has(path))
        .slice(0, MAX_CALLS - 1)
      if ((missing.length === 0 && extraResult !== undefined) || this.#texts.size > MAX_FILES) break
      const calls = [...(extraResult === undefined ? [extra] : []), ...missing.map(read)]
      const results = yield* this.#ask(
        `Reading ${missing.length} files${extraResult === undefined ? ' and the failures' : ''}.`,
        calls,
      )
      if (extraResult === undefined) extraResult = results[0]!
      missing.forEach((path, index) => {
        const { output, exitCode } = results[calls.length - missing.length + index]!
        this.#remember(
          path,
          exitCode === 0 && Buffer.byteLength(output) < MAX_FILE_BYTES ? output : '',
        )
      })
      wanted = first.flatMap((path) => this.#withImports(path))
      const foreign = sources.length > 0 && !wanted.some(this.#isSource)
      if (foreign) wanted = [...wanted, ...sources]
    }
    return extraResult ?? { output: '', exitCode: -1 }
  }

  #remember(path: string, text: string): void {
    this.#texts.set(path, text)
    const file = languageOf(path) === null ? null : parseSource(path, text)
    if (file !== null) this.#parsed.set(path, file)
  }

  /** A file and its direct and indirect imports, as far as they have been read. */
  #withImports(path: string): string[] {
    const all = new Set(this.#paths)
    const found = new Set([path])
    for (const next of found) {
      const file = this.#parsed.get(next)
      if (file !== undefined) for (const target of importsOf(file, all)) found.add(target)
    }
    return [...found]
  }

  #files(wanted: (path: string) => boolean): SourceFile[] {
    return [...this.#parsed]
      .filter(([path, { text }]) => wanted(path) && text !== '')
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, file]) => file)
  }

  #describe({ path, line, start, end, text, operator }: Candidate): string {
    const short = (piece: string): string => {
      const flat = piece.replace(/\s+/g, ' ').trim()
      return flat.length > 60 ? `${flat.slice(0, 57)}…` : flat
    }
    const before = short(this.#texts.get(path)!.slice(start, end))
    const after = short(text)
    const what =
      before === ''
        ? `add \`${after}\``
        : after === ''
          ? `remove \`${before}\``
          : `\`${before}\` → \`${after}\``
    return `${path}:${line} (${operator}) ${what}`
  }
}
