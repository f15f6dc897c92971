import { brief, briefOutcomes, isBriefProgress } from './brief.js'
import { edit, read, type SmallEdit, tryPatches } from './calls.js'
import { type Candidate, rankCandidates } from './candidates.js'
import {
  type CheckPlan, exitCodeOnly, limited, planCheck, scriptsOf, type TestCommand,
} from './check.js'
import { readClues } from './clues.js'
import type { CallResult, Plan, PlannedCall, PlannedTurn, Reply } from './conversation.js'
import { counted, countsIn, isSuccess } from './counted.js'
import { applyPatch, editOf } from './edit.js'
import { describePatch, diffOfChange, farewell, newRecord, noteMiss } from './farewell.js'
import { failingFiles } from './files.js'
import { namedRegionAt } from './outline.js'
import { MAX_FILE_LENGTH, type Part, partOf, Project, reads } from './project.js'
import { BATCHES, commandsFor, type Pursuit, takeRivals, teamOf, type Winner } from './pursuit.js'
import { obstacleOf } from './obstacle.js'
import { Promising } from './promising.js'
import { parseFailures, parseOutcomes, recogniseOutput } from './read-report.js'
import { agrees, type Failure, isProgress, type Outcomes, passCount } from './report.js'
import { rankPlaces } from './suspicion.js'
import { parseTrials, type Run, type TestedLines, type TrialReport } from './trial-report.js'

/** The frozen facts of the run that the search depends on. */
export interface SearchFacts {
  readonly check: string | null
  readonly tools: readonly string[]
  /** Whether a file belongs to the check of the run as far as is known now; more may be found. */
  readonly isCheckFile: (path: string) => boolean
}

const TOOLS: readonly string[] = ['list_files', 'read_file', 'try_patches', 'edit_file']
/** Calls of a turn that reads files. */
const MAX_READS = 40
/** Patches after which a run gives up. */
const MAX_TRIALS = 4_000
/** Patches that the whole check tells apart. */
const MAX_FINALISTS = 3
/** CPU seconds for each process of a run of tests. */
const CPU_SECONDS = 120
/** Patches tried for one test file before the next one gets a turn. */
const SHARE = 100
/** Characters of the reason why a patch was not made. */
const MAX_REASON = 200
/** Rivals of a patch that are tried at a time: what is as good as can be ends it. */
const RIVALS = 12
/** Other failing test files that are read, to see what is for them. */
const MAX_OTHERS = 20
/** What is left of a score of a patch that is for another test file. */
const FOR_OTHERS = 1e-9
/** Times in a row that everything is found changed, after which a run gives up. */
const MAX_INTERRUPTIONS = 5

/** Patches that the whole check has accepted together, mostly one, and what that printed. */
interface Accepted {
  readonly candidates: readonly Candidate[]
  readonly after: Outcomes
  readonly output: string
}

/** The tests at one state of the sources. */
interface Measured {
  /** The command that tells the outcomes of all tests. */
  readonly command: string
  readonly isBrief: boolean
  readonly outcomes: Outcomes
  /** Of the failing tests. */
  readonly details: string
  readonly failures: readonly Failure[]
  readonly tested: TestedLines | null
}

/**
 * Generate and validate: sees which tests fail and what they run, ranks small patches, tries them
 * in copies, and makes those in the workspace that let strictly more tests pass and none fail.
 *
 * 1. The workspace only ever gets patches that the whole check has accepted.
 * 2. Test files, and whatever else belongs to the check, are never written.
 * 3. No patch is tried twice on the same state of the sources.
 */
export class Search {
  readonly #facts: SearchFacts
  readonly #project: Project
  #plan: CheckPlan = exitCodeOnly('')
  #measured: Measured | null = null
  /** Failing test files for which nothing is left to try at the current state. */
  readonly #exhausted = new Set<string>()
  readonly #pursuits = new Map<string, Pursuit>()
  /** Patches tried at an earlier state, which are tried again last. */
  readonly #triedBefore = new Set<string>()
  readonly #promising = new Promising()
  /** How often patches could not be made in a copy, since a source was last seen to change. */
  readonly #impossible = new Map<string, number>()
  readonly #record = newRecord()
  /** The test file whose patches were tried last; empty for the whole check. */
  #focus = ''
  /** Trials have shown that files or tests are not what they were. */
  #interrupted = false
  /** How often that was, since a patch could last be tried. */
  #interruptions = 0
  /** What commands print without a patch, at the current state. */
  readonly #bases = new Map<string, string>()
  /** Why nothing can be repaired here. */
  #obstacle: string | null = null

  constructor(facts: SearchFacts) {
    this.#facts = facts
    this.#project = new Project(facts.isCheckFile)
  }

  *run(): Plan {
    this.#obstacle = this.#unsuitable()
    if (this.#obstacle === null) yield* this.#open()
    for (;;) {
      while (this.#obstacle !== null)
        yield { text: `No candidate left: ${this.#obstacle}`, calls: [], givesUp: true }
      if (this.#interrupted) {
        yield* this.#resync()
        if (++this.#interruptions > MAX_INTERRUPTIONS) {
          this.#obstacle = 'the files or the outcomes of the tests change all the time.'
        }
        continue
      }
      const failing = this.#failing()
      const isOver = this.#record.tried >= MAX_TRIALS
      const focus = isOver ? undefined : this.#nextFocus(failing)
      if (failing.length === 0) yield* this.#claim()
      else if (focus === undefined) yield* this.#giveUp(failing, isOver)
      else yield* this.#pursue(focus)
    }
  }

  #unsuitable(): string | null {
    if (this.#facts.check === null)
      return 'this goal has no check command, and a repair is judged by nothing else.'
    const lacking = TOOLS.filter((tool) => !this.#facts.tools.includes(tool))
    return lacking.length === 0
      ? null
      : `the tools ${lacking.join(', ')} are not offered, and repair needs them.`
  }

  get #outcomes(): Outcomes {
    return this.#measured?.outcomes ?? new Map()
  }

  #failing(): string[] {
    return [...this.#outcomes].flatMap(([name, outcome]) => (outcome === 'fail' ? [name] : []))
  }

  /** Yields a turn with calls. Messages say nothing that the next trials do not tell as well. */
  *#ask(
    text: string,
    calls: readonly PlannedCall[],
  ): Generator<PlannedTurn, readonly CallResult[], Reply> {
    return (yield { text, calls }).results
  }

  /** Lists the files, recognizes the check and runs it. */
  *#open(): Generator<PlannedTurn, void, Reply> {
    const [list, manifest] = yield* this.#ask('Looking at the files of the project.', [
      { tool: 'list_files', args: { recursive: true } }, read('package.json'),
    ])
    this.#project.list(list!)
    this.#plan = planCheck(this.#facts.check!, scriptsOf(manifest?.output ?? ''))
    const { leftOut = [] } = this.#plan
    const rest = leftOut.length === 0 ? '' : ` The goal needs ${leftOut.join(', ')} as well.`
    yield* this.#measure(
      `Running the tests to see which of them fail, and what those run.${rest}`, true,
    )
    const { details = '', outcomes } = this.#measured ?? {}
    const found = this.#plan.kind === 'any' ? recogniseOutput(details) : null
    const other = found === null ? undefined : this.#plan.readAs?.(found)
    if (other !== undefined) this.#plan = other
    // The output has no report of the expected kind, so only the exit code counts.
    else if ((outcomes?.size ?? 0) === 0) this.#plan = exitCodeOnly(this.#facts.check!)
    else return
    if (this.#obstacle !== null) return
    yield* this.#measure(
      other === undefined
        ? 'The check gives no report that can be read; going by its exit code.'
        : 'The check prints a report: going by that.',
      true,
    )
  }

  /** Runs all tests, and watches which lines they run. */
  *#measure(text: string, watch: boolean): Generator<PlannedTurn, void, Reply> {
    const { kind, whole } = this.#plan
    const before = this.#measured
    const [first] = yield* this.#ask(text, [
      tryPatches(limited(whole.details, CPU_SECONDS), [], { watch }),
    ])
    const report = parseTrials(first!)
    if (report === null) {
      this.#obstacle = `the tests cannot be run in a copy: ${first!.output.slice(0, 500)}`
      return
    }
    const details = report.base.shown
    const { paths } = this.#project
    const obstacle = obstacleOf(this.#plan, details, report.base.exitCode, paths)
    // It may be the plan that stands in the way: then the check itself runs.
    if (obstacle !== null && before === null && kind !== 'any') {
      this.#measured = null
      return
    }
    if (obstacle !== null && before === null) this.#obstacle = obstacle
    const failures = parseFailures(kind, details)
    const tested = report.tested ?? before?.tested ?? null
    const command = limited(whole.outcomes, CPU_SECONDS)
    const found = { command, isBrief: false, details, failures, tested }
    if (report.base.output !== null || kind === 'any') {
      const outcomes = this.#read(report.base, false)
      this.#measured = { ...found, outcomes }
      return
    }
    for (const isBrief of [false, true]) {
      const line = isBrief ? brief(command, kind) : command
      if (line === null) break
      const [result] = yield* this.#ask('There are many tests: running them for less output.', [
        tryPatches(line, []),
      ])
      const run = this.#parse(line, result!)?.base
      if (run?.output == null) continue
      const shown = result!.output
      this.#measured = {
        ...found, command: line, isBrief, outcomes: this.#read(run, isBrief),
        // It names the files of all that fail, where the other one was cut.
        details: shown,
        failures: failures.length > 0 ? failures : parseFailures(kind, shown),
      }
      return
    }
    this.#obstacle = 'the report of the tests is too long to be read: give a check with fewer.'
  }

  #read({ output, exitCode }: Run, isBrief: boolean): Outcomes {
    const { kind } = this.#plan
    if (kind === 'any') return parseOutcomes(kind, output ?? '', exitCode)
    if (output === null) return new Map()
    return isBrief
      ? briefOutcomes(kind, output, exitCode)
      : parseOutcomes(kind, output, exitCode)
  }

  /** The next test file to work on; null for the whole check; undefined when all are exhausted. */
  #nextFocus(failing: readonly string[]): string | null | undefined {
    const known = this.#failingFiles(failing)
    const open = (known.length === 0 ? [''] : known).filter((path) => !this.#exhausted.has(path))
    // In shares, so that a hard bug does not keep easy ones waiting.
    const share = (path: string): number => Math.floor((this.#pursuits.get(path)?.at ?? 0) / SHARE)
    const [next] = open.sort((a, b) => share(a) - share(b) || (a < b ? -1 : 1))
    return next === undefined ? undefined : next || null
  }

  /** The files of failing tests that can be run alone. */
  #failingFiles(failing: readonly string[]): readonly string[] {
    const { kind, file } = this.#plan
    if (file('').length === 0) return []
    return failingFiles(kind, this.#measured?.details ?? '', failing, this.#project.paths)
  }

  /** Reads what one test file needs, and ranks patches for it. */
  *#begin(focus: string | null): Generator<PlannedTurn, Pursuit, Reply> {
    const { command, failures, outcomes, tested } = this.#measured!
    const project = this.#project
    const failing = this.#failing()
    const others = this.#failingFiles(failing).filter((path) => path !== focus).slice(0, MAX_OTHERS)
    const first = focus === null ? project.paths.filter(project.isTest).slice(0, 20) : [focus]
    const seen = [...(tested?.files.keys() ?? [])].filter(project.isSource)
    for (;;) {
      const missing = project.missing(first, others, seen, MAX_READS)
      if (missing.length === 0) break
      for (const [path, text] of yield* this.#texts('Reading', missing)) {
        project.remember(path, text ?? '')
        if (text === null) this.#record.unread.add(path)
      }
    }
    const reachable = new Set(focus === null ? [] : project.withImports(focus))
    const isReached = (path: string): boolean => reachable.has(path) || seen.includes(path)
    const isFar = ![...reachable, ...seen].some(project.isSource)
    const sources = project.files((path) => project.isSource(path) && (isFar || isReached(path)))
    const tests = project.files(
      (path) => project.isTest(path) && (reachable.has(path) || first.includes(path)),
    )
    for (const { path } of sources.length === 0 ? tests : [])
      if (!first.includes(path)) this.#record.helpers.add(path)
    const suspicion = rankPlaces(sources, tests, failures, outcomes, tested)
    const open = new Set(failing)
    // No test of this file reaches what only others import: it is for their turn.
    const theirs = new Set(others.flatMap((path) => project.withImports(path)))
    const chance = ({ key, path }: Candidate): number =>
      (this.#triedBefore.has(key) ? 1 / 3 : 1) *
      (theirs.has(path) && !reachable.has(path) ? FOR_OTHERS : 1)
    const all = rankCandidates(sources, readClues(failures, sources, tests), suspicion)
      .filter(({ key }) => !this.#record.refused.has(key))
      // Once, a file may have been changed and changed back.
      .filter(({ key }) => (this.#impossible.get(key) ?? 0) < 2)
      .map((candidate) => ({ ...candidate, score: candidate.score * chance(candidate) }))
      .sort((a, b) => b.score - a.score)
    const likely = all.filter((candidate) => this.#promising.has(candidate, open))
    const candidates = [...likely, ...all.filter((candidate) => !likely.includes(candidate))]
    this.#promising.clear()
    const { isBrief } = this.#measured!
    const ways = focus === null || isBrief ? [] : yield* this.#sound(this.#plan.file(focus))
    const commands = commandsFor(ways, failing, outcomes).map((line) => limited(line, CPU_SECONDS))
    return { commands: [...commands, command], suspicion, likely, candidates, at: 0, round: 0 }
  }

  /** Without the shortcuts that change the outcome of a test. */
  *#sound(ways: readonly TestCommand[]): Generator<PlannedTurn, readonly TestCommand[], Reply> {
    const sound: TestCommand[] = []
    for (const way of ways) {
      if (way.isShortcut === true) {
        const line = limited(way.outcomes, CPU_SECONDS)
        const [result] = yield* this.#ask('Running the tests of one file alone.', [
          tryPatches(line, []),
        ])
        const run = this.#parse(line, result!)?.base
        if (run === undefined || !this.#fits(this.#read(run, false))) continue
      }
      sound.push(way)
    }
    return sound
  }

  /** Tries the next patches for one test file. */
  *#pursue(focus: string | null): Generator<PlannedTurn, void, Reply> {
    const id = focus ?? ''
    this.#focus = id
    const pursuit = this.#pursuits.get(id) ?? (yield* this.#begin(focus))
    if (pursuit.at >= pursuit.candidates.length) {
      this.#exhausted.add(id)
      return
    }
    this.#pursuits.set(id, pursuit)
    if (pursuit.likely.length > 0) {
      yield* this.#tryLikely(pursuit)
      return
    }
    const size = BATCHES[Math.min(pursuit.round++, BATCHES.length - 1)]!
    const batch = pursuit.candidates.slice(pursuit.at, pursuit.at + size)
    pursuit.at += batch.length
    const winners = yield* this.#try(batch, pursuit)
    if (winners.length === 0 || this.#interrupted) return
    // A patch that fixes only some of its function's failing tests may do so by coincidence: other
    // patches, of this function first, get a chance to do better.
    const { candidate, gained, failing } = winners[0]!
    const wanted = this.#wanted(candidate, failing, pursuit)
    if (gained < wanted) {
      const rivals = takeRivals(pursuit, candidate, this.#project.parsed(candidate.path)!)
      for (let at = 0; at < rivals.length; at += RIVALS) {
        const better = yield* this.#try(rivals.slice(at, at + RIVALS), pursuit)
        if (this.#interrupted) return
        winners.push(...better)
        if (better.some((rival) => rival.gained >= wanted)) break
      }
      winners.sort((a, b) => b.gained - a.gained || b.candidate.score - a.candidate.score)
    }
    yield* this.#choose(winners, pursuit)
  }

  /** How many of the failing tests a patch repairs that is right. */
  #wanted(candidate: Candidate, failing: number, { suspicion }: Pursuit): number {
    const file = this.#project.parsed(candidate.path)!
    return Math.min(failing, suspicion.failing(file, candidate.token))
  }

  /** Patches that helped at an earlier state: the whole check is all that they still need. */
  *#tryLikely(pursuit: Pursuit): Generator<PlannedTurn, void, Reply> {
    const some = pursuit.likely.slice(0, MAX_FINALISTS)
    pursuit.likely = pursuit.likely.slice(MAX_FINALISTS)
    const best = yield* this.#judge(
      some.map((candidate) => [candidate]), 'Tests still fail that passed with',
    )
    if (this.#interrupted) return
    if (best === null) {
      pursuit.candidates = pursuit.candidates.filter((candidate) => !some.includes(candidate))
      return
    }
    const gained = passCount(best.after) - passCount(this.#outcomes)
    // It may do so by coincidence: then others are tried beside it.
    const wanted = this.#wanted(best.candidates[0]!, this.#failing().length, pursuit)
    if (gained < wanted) pursuit.likely = []
    else yield* this.#keep(best)
  }

  /** Tries patches with the tests of one file; returns those that help, best first. */
  *#try(
    batch: readonly Candidate[],
    pursuit: Pursuit,
  ): Generator<PlannedTurn, Winner[], Reply> {
    const failing = this.#failing()
    const some = failing.slice(0, 3).join('; ') + (failing.length > 3 ? '; …' : '')
    let rest = batch
    const winners: Winner[] = []
    while (rest.length > 0) {
      const [command] = pursuit.commands
      const report = yield* this.#trials(
        `${failing.length} of ${this.#outcomes.size} tests fail (${some}). ` +
          `Trying ${rest.length} ${rest.length === 1 ? 'patch' : 'patches'} in copies:\n` +
          rest.map((candidate) => `- ${this.#describe(candidate)}`).join('\n'),
        command!,
        rest.map((candidate) => [candidate]),
      )
      const isWhole = pursuit.commands.length === 1
      const isBrief = isWhole && this.#measured!.isBrief
      const baseline = report === null ? new Map() : this.#read(report.base, isBrief)
      const fails = [...baseline.values()].includes('fail')
      if (!fails || (!isWhole && !isBrief && !this.#fits(baseline))) {
        if (!isWhole && report !== null) {
          pursuit.commands.shift()
          continue
        }
        // Something has changed since: the tests do not fail any more, or nothing can be tried.
        this.#interrupted = true
        return []
      }
      const [ran, later] = this.#account(rest, report!, baseline, isBrief)
      winners.push(...ran)
      if (this.#interrupted) return []
      // The tool stops early when patches take long.
      rest = later.length < rest.length ? later : []
    }
    return winners.sort((a, b) => b.gained - a.gained)
  }

  /** Are these the same tests as those of the whole check? They are not by other names. */
  #fits(baseline: Outcomes): boolean {
    return this.#measured!.isBrief || agrees(baseline, this.#outcomes)
  }

  /** What came of patches: those that help, and those that have not been tried. */
  #account(
    batch: readonly Candidate[],
    report: TrialReport,
    baseline: Outcomes,
    isBrief: boolean,
  ): readonly [Winner[], Candidate[]] {
    const winners: Winner[] = []
    const later: Candidate[] = []
    const failing = [...baseline.values()].filter((outcome) => outcome === 'fail').length
    batch.forEach((candidate, at) => {
      const run = report.runs[at] ?? 'not tried'
      if (run === 'not tried') {
        later.push(candidate)
        return
      }
      this.#triedBefore.add(candidate.key)
      // Its text is not there any more: the files have changed.
      if (run === 'impossible') {
        this.#interrupted = true
        this.#impossible.set(candidate.key, (this.#impossible.get(candidate.key) ?? 0) + 1)
        return
      }
      const record = this.#record
      record.tried += 1
      this.#interruptions = 0
      record.files.add(candidate.path)
      record.places.add(this.#placeOf(candidate))
      if (run.timedOut) record.late += 1
      const after = this.#read(run, isBrief)
      if (helps(baseline, after, isBrief)) {
        const repaired = [...after].flatMap(([name, is]) =>
          is === 'pass' && baseline.get(name) === 'fail' ? [name] : [])
        const gained = passCount(after) - passCount(baseline)
        winners.push({ candidate, gained, failing, repaired })
      } else if (maySucceed(run, report.base)) {
        winners.push({ candidate, gained: failing, failing, repaired: [] })
      } else if (after.size > 0) {
        const count = (was: string, is: string): number =>
          [...baseline].filter(([name, it]) => it === was && after.get(name) === is).length
        const [helped, harmed] = [count('fail', 'pass'), count('pass', 'fail')]
        noteMiss(
          record, { what: this.#describe(candidate), helped, harmed }, () => this.#diff(candidate),
        )
      }
    })
    return [winners, later]
  }

  #placeOf({ path, token }: Candidate): string {
    const file = this.#project.parsed(path)
    return `${path} ${file === undefined ? -1 : namedRegionAt(file.regions, token)}`
  }

  *#trials(
    text: string,
    command: string,
    batch: readonly (readonly Candidate[])[],
  ): Generator<PlannedTurn, TrialReport | null, Reply> {
    const patches = batch.map((candidates) => candidates.map((one) => this.#editOf(one)))
    const [result] = yield* this.#ask(text, [tryPatches(command, patches)])
    const report = this.#parse(command, result!)
    if (report === null || report.base.output !== null) return report
    // What patches change is told first, and takes room.
    const [alone] = yield* this.#ask('Running the tests without a patch, to see all of it.', [
      tryPatches(command, []),
    ])
    this.#parse(command, alone!)
    return this.#parse(command, result!)
  }

  #editOf(candidate: Candidate): SmallEdit {
    return { path: candidate.path, ...editOf(this.#project.text(candidate.path), candidate) }
  }

  #parse(command: string, result: CallResult): TrialReport | null {
    const report = parseTrials(result, this.#bases.get(command) ?? null)
    const output = report?.base.output ?? null
    if (output !== null) this.#bases.set(command, output)
    return report
  }

  /** Makes the best of some patches that helped their tests, by the whole check. */
  *#choose(
    winners: readonly Winner[],
    pursuit: Pursuit,
  ): Generator<PlannedTurn, void, Reply> {
    // Others may be needed as well, if they repair something else.
    for (const { candidate, repaired } of winners) this.#promising.add(candidate, repaired)
    const team = teamOf(winners, ({ candidate, failing }) =>
      this.#wanted(candidate, failing, pursuit))
    if (team.length > 1) {
      const candidates = team.map(({ candidate }) => candidate)
      const all = yield* this.#judge([candidates], 'Other tests pass with each of these:')
      const wanted = team.reduce((sum, { gained }) => sum + gained, passCount(this.#outcomes))
      const isGood = all !== null && passCount(all.after) >= wanted
      if (isGood) yield* this.#keep(all)
      if (isGood || this.#interrupted) return
    }
    let best: Accepted | null = null
    for (let at = 0; at < winners.length; ) {
      // The first one alone, beside the run without a patch.
      const some: readonly Winner[] = winners.slice(at, at === 0 ? 1 : at + MAX_FINALISTS)
      const kept = best
      if (kept !== null && (at > 1 || !some.some((one) => this.#mayBeat(one, kept, pursuit))))
        break
      const judged = some.map(({ candidate }) => [candidate])
      const next: Accepted | null = yield* this.#judge(judged, 'More tests pass with')
      if (this.#interrupted) return
      if (next !== null && passCount(next.after) > passCount(best?.after ?? new Map())) best = next
      at += some.length
    }
    if (best !== null) yield* this.#keep(best)
  }

  /** Whether a patch, if it is right, repairs more tests than one that the whole check accepts. */
  #mayBeat({ candidate }: Winner, { after }: Accepted, pursuit: Pursuit): boolean {
    const gained = passCount(after) - passCount(this.#outcomes)
    return this.#wanted(candidate, this.#failing().length, pursuit) > gained
  }

  /** The best of some patches by the whole check; null when it accepts none. */
  *#judge(
    finalists: readonly (readonly Candidate[])[],
    cause: string,
  ): Generator<PlannedTurn, Accepted | null, Reply> {
    const { command, isBrief, outcomes: before } = this.#measured!
    const report = yield* this.#trials(
      `${cause} ${finalists.map((one) => this.#describeAll(one)).join(', or ')}. ` +
        `Running all tests with ${finalists[0]!.length > 1 ? 'all of them' : 'it'}.`,
      command,
      finalists,
    )
    if (report === null) this.#interrupted = true
    if (report === null || this.#interrupted) return null
    const baseline = this.#read(report.base, isBrief)
    let best: Accepted | null = null
    for (const [at, candidates] of finalists.entries()) {
      const run = report.runs[at]
      if (run === undefined || typeof run === 'string') continue
      let after = this.#read(run, isBrief)
      if (!helps(baseline.size === 0 ? before : baseline, after, isBrief)) {
        const succeeds = maySucceed(run, report.base) && (yield* this.#isSuccess(candidates))
        if (!succeeds) continue
        after = new Map([...before.keys()].map((name) => [name, 'pass']))
      }
      const isBetter = best === null || passCount(after) > passCount(best.after)
      if (isBetter) best = { candidates, after, output: run.output ?? '' }
    }
    return best
  }

  /** Whether all tests pass with a patch, whatever their names are. */
  *#isSuccess(candidates: readonly Candidate[]): Generator<PlannedTurn, boolean, Reply> {
    const { kind, whole } = this.#plan
    const command = counted(limited(whole.outcomes, CPU_SECONDS), kind)
    if (command === null) return false
    const report = yield* this.#trials(
      `Other tests pass with ${this.#describeAll(candidates)}: counting them.`,
      command,
      [candidates],
    )
    const run = report?.runs[0]
    if (run === undefined || typeof run === 'string' || run.exitCode !== 0) return false
    const [before, after] = [report!.base, run].map(({ output }) => countsIn(output ?? ''))
    return before != null && after != null && isSuccess(before, after)
  }

  /** Makes patches in the workspace. */
  *#keep({ candidates, after, output: report }: Accepted): Generator<PlannedTurn, void, Reply> {
    const what = candidates.map((candidate) => this.#describe(candidate))
    const passing = passCount(after)
    const made = yield* this.#ask(
      `Making the ${what.length === 1 ? 'patch' : 'patches'} ${what.join(' and ')}: ` +
        `${passing} of ${after.size} tests pass with ${what.length === 1 ? 'it' : 'them'}.`,
      candidates.map((candidate) => edit(this.#editOf(candidate))),
    )
    candidates.forEach((candidate, at) => {
      const { exitCode, output } = made[at]!
      if (exitCode !== 0) {
        this.#interrupted = true
        // It is left out from now on, so this is not the same once more.
        this.#interruptions = 0
        this.#record.refused.set(candidate.key, `${what[at]!}: ${firstLine(output)}`)
      } else {
        const text = this.#project.text(candidate.path)
        this.#project.remember(candidate.path, applyPatch(text, candidate))
        this.#record.kept.push(what[at]!)
      }
    })
    if (this.#interrupted) return
    this.#exhausted.clear()
    this.#pursuits.clear()
    this.#bases.clear()
    const measured = this.#measured!
    const failures = measured.failures.filter(({ name }) => after.get(name) !== 'pass')
    // It names the files of the tests that still fail.
    this.#measured = { ...measured, outcomes: after, failures, details: report }
  }

  /** Called when all tests pass: a turn without calls lets the engine check the goal. */
  *#claim(): Generator<PlannedTurn, void, Reply> {
    const { kept } = this.#record
    const list = kept.length === 0 ? '' : ` Kept:\n${kept.map((what) => `- ${what}`).join('\n')}`
    yield {
      text:
        'No test fails any more. ' +
        `Whether the code is right beyond them, no check can tell.${list}`,
      calls: [],
    }
    // Resumed, so the goal is not met although the tests pass: only the exit code counts from here.
    const before = this.#plan.kind
    yield* this.#resync()
    if (this.#failing().length > 0) return
    if (before !== 'any') {
      this.#plan = exitCodeOnly(this.#facts.check!)
      yield* this.#measure(
        'The goal is not met although every test passes; going by the exit code of the check.',
        true,
      )
      if (this.#failing().length > 0) return
    }
    yield {
      text:
        'No candidate left: the check passes as run here, ' +
        `so there is no failure to work on.${list}`,
      calls: [],
      givesUp: true,
    }
    yield* this.#resync()
  }

  *#giveUp(failing: readonly string[], isOver: boolean): Generator<PlannedTurn, void, Reply> {
    const text = farewell(this.#record, failing, this.#outcomes.size, isOver)
    yield { text, calls: [], givesUp: true }
    yield* this.#resync()
  }

  /** Reads the files again and runs the check, because the state may have changed. */
  *#resync(): Generator<PlannedTurn, void, Reply> {
    const project = this.#project
    const paths = project.sourcesRead()
    const before = JSON.stringify([...this.#outcomes])
    let changed = false
    for (let at = 0; at < paths.length; at += MAX_READS) {
      const part = paths.slice(at, at + MAX_READS)
      for (const [path, text] of yield* this.#texts('Reading again', part)) {
        if (text === null || text === project.text(path)) continue
        changed = true
        this.#record.refused.clear()
        this.#impossible.clear()
        this.#record.unread.delete(path)
        project.remember(path, text)
      }
    }
    this.#bases.clear()
    yield* this.#measure('Running the tests again.', true)
    if (changed || JSON.stringify([...this.#outcomes]) !== before) this.#exhausted.clear()
    // Nothing has changed, and its trials have come to nothing twice: those of others may not.
    else if (this.#interruptions > 0) this.#exhausted.add(this.#focus)
    this.#pursuits.clear()
    this.#interrupted = false
  }

  /** The texts of files, in as many parts as it takes; null for one that cannot be read. */
  *#texts(
    what: string,
    paths: readonly string[],
  ): Generator<PlannedTurn, ReadonlyMap<string, string | null>, Reply> {
    const texts = new Map<string, string | null>()
    let rest: readonly Part[] = paths.map((path) => ({ path, offset: 1 }))
    while (rest.length > 0) {
      const results = yield* this.#ask(`${what} ${rest.length} files.`, reads(rest))
      const later: Part[] = []
      rest.forEach(({ path }, at) => {
        const { text, next } = partOf(results[at]!)
        const known = texts.get(path) ?? ''
        const whole = text === null || known.length > MAX_FILE_LENGTH ? null : known + text
        texts.set(path, whole)
        if (whole !== null && next !== null) later.push({ path, offset: next })
      })
      rest = later
    }
    return texts
  }

  #diff(candidate: Candidate): string {
    const text = this.#project.text(candidate.path)
    return diffOfChange(candidate.path, text, applyPatch(text, candidate))
  }

  #describeAll(candidates: readonly Candidate[]): string {
    return candidates.map((candidate) => this.#describe(candidate)).join(', and ')
  }

  #describe(candidate: Candidate): string {
    return describePatch(candidate, this.#project.text(candidate.path))
  }
}

function firstLine(output: string): string {
  return output.trimStart().split('\n', 1)[0]!.slice(0, MAX_REASON)
}

function helps(before: Outcomes, after: Outcomes, isBrief: boolean): boolean {
  return isBrief ? isBriefProgress(before, after) : isProgress(before, after)
}

/** Whether all tests may pass unseen: too much has changed, or names change each time. */
function maySucceed(run: Run, base: Run): boolean {
  return run.exitCode === 0 && base.exitCode !== 0
}
