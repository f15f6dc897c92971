/**
 * One check of a goal: runs the command, reads the test runner's report, and compares both with
 * what the run started from. A goal is met when
 *
 * 1. the files that it protects are unchanged, before and after the command;
 * 2. the command ended with the exit code that counts as success, in time;
 * 3. where a test runner reports: every test of the first check is still there and passes, no test
 *    is newly skipped, and at least one passes.
 *
 * @module
 */
import { GoalError } from '../errors.js'
import type { CommandResult } from '../executor.js'
import { onOwnFiles, untilPossible, type Patience } from '../exhaustion.js'
import type { GoalCheckContext, GoalSpec, GoalVerdict, KeptTests, TestCounts } from '../goal.js'
import { OutputKeeper } from '../output.js'
import { areHashed } from '../test-outcomes.js'
import {
  brokenAssertions,
  changeOf,
  countTests,
  failureOf,
  listChanges,
  silencedCanaries,
} from './compare-tests.js'
import { compareFiles } from './protected-files.js'
import { mayRunScripts, scriptEnds, type ScriptEnds } from './reports/early-exits.js'
import { listFailed } from './reports/failed-tests.js'
import { ReportFolder } from './reports/folder.js'
import { TEST_RUNNERS } from './reports/registry.js'
import { fileOf, isFile } from './reports/test-names.js'
import { TestTable } from './reports/test-table.js'
import type { ReportProblem, TestReport, TestRunner } from './reports/types.js'
import { isInTestTree, isTestName } from './sealed/file-kinds.js'

/** Leaves room for changed files and failing tests in the 32 KiB that a verdict may hold. */
const MAX_OUTPUT_BYTES = 22 * 1024
/** For a runner whose report is its output. */
const MAX_REPORT_OUTPUT_BYTES = 32 * 1024 * 1024
const MAX_LISTED = 20
const PERF_RUNS = 3

/** Keeps a check from asking questions, watching files, or colouring its output. */
const QUIET: Readonly<Record<string, string>> = {
  CI: '1',
  NO_COLOR: '1',
  TERM: 'dumb',
  // An agent can write the user's npmrc, which may replace the shell that runs scripts.
  npm_config_userconfig: '/dev/null',
  npm_config_update_notifier: 'false',
  npm_config_fund: 'false',
  npm_config_audit: 'false',
  // Python could take a file compiled now for the next version of its source.
  PYTHONDONTWRITEBYTECODE: '1',
}

/**
 * Checks a goal once, within `spec.timeout_ms` (three times that for a goal with
 * `max_duration_ms`).
 *
 * @throws the signal's reason when it is aborted; {@link ExhaustedError} while the machine is at
 * fault, before the command has run: afterwards it waits; an `Error` when the check itself is
 * impossible.
 */
export async function checkGoal(spec: GoalSpec, context: GoalCheckContext): Promise<GoalVerdict> {
  const { signal } = context
  signal.throwIfAborted()
  const before = await filesChanged(spec, context)
  const runner = spec.reporter === null ? null : TEST_RUNNERS[spec.reporter]
  const isWatched = runner !== null || mayRunScripts(spec.command)
  await using folder = isWatched ? await ReportFolder.create(context.cwd) : null
  const run = await runCommand(spec, context, runner, folder)
  signal.throwIfAborted()
  // The command has run: what is read afterwards does not make it run again.
  const [report, ends, after] = await patienceOf(context)(async () => {
    const reported = await onOwnFiles('the report of the check cannot be read', async () =>
      await evidenceIn(folder, runner, run, context),
    )
    return [reported.report, reported.ends, await filesChanged(spec, context)] as const
  })
  signal.throwIfAborted()
  const changes = [...new Set([...before, ...after])]
  if (report === 'too_large' && context.isFirst === true && !run.timedOut) {
    throw new Error(TOO_LARGE_AT_FIRST)
  }
  return await verdictOf(spec, context, await readable(runner, run), { report, ends, changes })
}

/** How a check waits for the machine. */
export function patienceOf({ signal, untilPossible: given }: GoalCheckContext): Patience {
  return given ?? ((work, stop = signal) => untilPossible(work, stop))
}

/** Whether a file belonged to the check when the run started. */
function isOfCheck(path: string, { baseline }: GoalCheckContext): boolean {
  return Object.hasOwn(baseline.files, path)
}

/** What is known of a check beside the result of its command. */
interface Evidence {
  readonly report: TestReport | ReportProblem | null
  /** How plain scripts ended; null under a test runner, and for a command that runs none. */
  readonly ends: ScriptEnds | null
  /** Files of the check that differ. */
  readonly changes: readonly string[]
}

/** Reads the evidence that a command wrote to its report folder. Null if nothing was watched. */
async function evidenceIn(
  folder: ReportFolder | null,
  runner: TestRunner | null,
  run: CommandResult,
  context: GoalCheckContext,
): Promise<Pick<Evidence, 'report' | 'ends'>> {
  if (folder === null) return { report: null, ends: null }
  if (runner !== null) return { report: await readReport(runner, run, folder), ends: null }
  const ends = await scriptEnds(folder.place, (path) => isOfCheck(path, context))
  return { report: null, ends }
}

async function readReport(
  runner: TestRunner,
  run: CommandResult,
  folder: ReportFolder,
): Promise<TestReport | ReportProblem> {
  const isCut = runner.readable !== undefined && run.truncated
  return isCut ? 'too_large' : await runner.read(folder.place, run.output)
}

/** The result with its output as people read it. */
async function readable(runner: TestRunner | null, run: CommandResult): Promise<CommandResult> {
  if (runner?.readable === undefined) return run
  // Redacts what it keeps, where `headAndTail` would redact all of it.
  const kept = new OutputKeeper(MAX_OUTPUT_BYTES)
  kept.add(Buffer.from(await runner.readable(run.output)))
  return { ...run, output: kept.finish().text }
}

async function filesChanged(spec: GoalSpec, context: GoalCheckContext): Promise<readonly string[]> {
  if (spec.allow_test_changes) return []
  try {
    return await compareFiles(spec, context.cwd, context.baseline, context.via)
  } catch (error) {
    // The workspace has grown too large to tell whether its tests are unchanged.
    if (error instanceof GoalError) return [error.message]
    throw error
  }
}

/** Runs the command once; for a goal with a time limit, until it is met, at most three times. */
async function runCommand(
  spec: GoalSpec,
  context: GoalCheckContext,
  runner: TestRunner | null,
  folder: ReportFolder | null,
): Promise<CommandResult> {
  const given = { ...QUIET, ...spec.env }
  const env = (await folder?.inject(runner, given)) ?? given
  const command = folder?.wrap(spec.command) ?? spec.command
  let best: CommandResult | undefined
  for (let i = 0; i < PERF_RUNS; i++) {
    const result = await context.executor.run(command, {
      cwd: context.cwd,
      env,
      timeoutMs: spec.timeout_ms,
      maxOutputBytes: runner?.readable === undefined ? MAX_OUTPUT_BYTES : MAX_REPORT_OUTPUT_BYTES,
      mark: context.mark,
      writable: folder === null ? [] : [folder.place.folder],
      signal: context.signal,
    })
    if (best === undefined || result.durationMs < best.durationMs) best = result
    if (spec.max_duration_ms === undefined || result.durationMs <= spec.max_duration_ms)
      return result
    if (result.exitCode !== spec.success_exit_code || context.signal.aborted) return result
  }
  return best!
}

async function verdictOf(
  spec: GoalSpec,
  context: GoalCheckContext,
  run: CommandResult,
  evidence: Evidence,
): Promise<GoalVerdict> {
  const { changes } = evidence
  const report = typeof evidence.report === 'string' || run.timedOut ? null : evidence.report
  const reported = report?.tests ?? null
  const counts = reported === null ? null : countTests(reported)
  // Without any test there is no baseline yet; a later check may still give one.
  const tests = counts === null || counts.total === 0 ? null : reported
  const problem = await problemOf(spec, context, run, evidence)
  const failing = listFailed(report?.failed ?? [], counts?.failed ?? 0)
  const before = beforeOf(spec, context, reported)
  return {
    achieved: problem === null,
    reason: problem ?? success(spec, run, counts, before),
    assurance: {
      by: spec.reporter === null || before === 'unknown' ? 'exit_code' : 'tests',
      sealed: false,
      canaries: report?.canaries ?? false,
      holdout: false,
      ...(before === 'none' && { own_tests: true }),
    },
    exit_code: run.exitCode,
    duration_ms: Math.round(run.durationMs),
    counts,
    tests: tests instanceof TestTable ? await keptOf(tests, context) : tests,
    test_files: report?.files ?? [],
    deeds: report?.deeds ?? evidence.ends?.deeds ?? [],
    output: failing + run.output + listing(changes),
  }
}

/** Of a big suite, the tests of the first check alone: with those, later ones are compared. */
function keptOf(tests: TestTable, context: GoalCheckContext): Promise<KeptTests> | null {
  return context.baselineTests === null ? tests.pack() : null
}

/** Why the goal is not met; null when it is. The first reason that applies, causes first. */
async function problemOf(
  spec: GoalSpec,
  context: GoalCheckContext,
  run: CommandResult,
  { report, ends, changes }: Evidence,
): Promise<string | null> {
  if (changes.length > 0) return `tests changed: ${listChanges(changes)}`
  if (run.timedOut) return `check timed out after ${Math.round(spec.timeout_ms / 100) / 10} s`
  if (typeof report === 'string') return withoutReport(spec, run, report)
  if (report !== null) {
    const broken = brokenAssertions(report)
    if (broken !== null) return broken
    const baseline = spec.allow_test_changes ? null : context.baselineTests
    const failure = await failureOf(report.tests, baseline)
    if (failure !== null) return failure
    const change = baseline === null ? null : await changeOf(report, baseline)
    if (change !== null) return change
    if (countTests(report.tests).passed === 0) return 'no tests ran'
    const silenced = silencedCanaries(report)
    if (silenced !== null) return silenced
  }
  if (run.exitCode !== spec.success_exit_code) return `exit code ${run.exitCode}`
  if (ends !== null && ends.problem !== null) return ends.problem
  if (spec.max_duration_ms !== undefined && run.durationMs > spec.max_duration_ms) {
    return `took ${Math.round(run.durationMs)} ms, which is more than ${spec.max_duration_ms} ms`
  }
  return null
}

const REPORT_PROBLEMS: Readonly<Record<ReportProblem, string>> = {
  absent: 'no tests ran under the test runner',
  incomplete: 'the test runner stopped before its report was complete',
  invalid: 'the report of the test runner was tampered with',
  too_large: 'the report of the test runner is too large to be read',
}

/** The run ends with this before any work is done: no later check could be compared. */
const TOO_LARGE_AT_FIRST =
  `${REPORT_PROBLEMS.too_large}: a check compares up to a million tests, from 1 GiB of report ` +
  '(32 MiB of Go and Bun). Let its command run a part of the tests'

function withoutReport(spec: GoalSpec, run: CommandResult, problem: ReportProblem): string {
  if (run.exitCode !== spec.success_exit_code && problem === 'absent') {
    const missing = /No module named '?(pytest)'?/.exec(run.output)?.[1]
    if (missing !== undefined)
      return `${missing} is not installed for the Python that runs the check`
    return `exit code ${run.exitCode}`
  }
  return REPORT_PROBLEMS[problem]
}

/** What is known of the tests of the start: their outcomes, that there are none, or neither. */
type Before = 'known' | 'none' | 'unknown'

function beforeOf(
  { reporter }: GoalSpec,
  { areTestsLate, baseline, baselineTests, isFirst }: GoalCheckContext,
  reported: TestReport['tests'] | null,
): Before {
  if (reporter === null || isFirst === true) return 'known'
  if (baselineTests !== null && areTestsLate !== true) {
    if (areHashed(baselineTests) || reported instanceof TestTable) return 'known'
    const isBroken = (name: string): boolean =>
      !isFile(name) && Object.hasOwn(baselineTests, fileOf(name))
    const skipped = Object.entries(reported ?? {}).filter(([, outcome]) => outcome === 'skip')
    return skipped.some(([name]) => isBroken(name)) ? 'unknown' : 'known'
  }
  // A syntax error, a missing module or a step before the tests kept the first check from any.
  const isTest = (path: string): boolean => isTestName(path) || isInTestTree(path)
  return Object.keys(baseline.files).some(isTest) ? 'unknown' : 'none'
}

const NOTE: Readonly<Record<Before, string>> = {
  known: '',
  none: "; all of them are the run's own",
  unknown: '; the first check could not load them',
}

function success(
  spec: GoalSpec,
  run: CommandResult,
  counts: TestCounts | null,
  before: Before,
): string {
  if (spec.max_duration_ms !== undefined) {
    return `took ${Math.round(run.durationMs)} ms, within ${spec.max_duration_ms} ms`
  }
  if (counts === null) return `exit code ${run.exitCode}`
  const { passed, skipped } = counts
  const tests = passed === 1 ? 'the only test passes' : `all ${passed} tests pass`
  const asBefore = before === 'known' ? ' as before' : ''
  const others = skipped === 0 ? '' : `, ${skipped} skipped${asBefore}`
  return `${tests}${others}${NOTE[before]}`
}

/** All changes of protected files, for the model, which has to undo them. */
function listing(changes: readonly string[]): string {
  if (changes.length === 0) return ''
  const shown = changes.slice(0, MAX_LISTED).map((change) => `- ${change}\n`)
  const more = changes.length > MAX_LISTED ? `- and ${changes.length - MAX_LISTED} more\n` : ''
  return `\nThese files belong to the check and must be as they were:\n${shown.join('')}${more}`
}
