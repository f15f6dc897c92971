/**
 * One check of a goal: the command is run, our reporter's account is read, and both are held
 * against what was there when the run started.
 *
 * A goal is met when the files that it protects are as they were, the command ended with the wanted
 * exit code, and, where a test runner reports, every test of the first check is still there and
 * passes, none newly skipped, at least one in all.
 *
 * @module
 */
import { GoalError } from '../errors.js'
import type { CommandResult } from '../executor.js'
import type { GoalCheckContext, GoalSpec, GoalVerdict } from '../goal.js'
import { headAndTail } from '../output.js'
import { changeOf, countTests, failureOf, listChanges } from './compare-tests.js'
import { compareFiles } from './protected-files.js'
import { readableGo } from './reports/go.js'
import { ReportFolder } from './reports/reports.js'
import type { ReportProblem, TestReport } from './reports/reports.js'

/** With the list of changed files it makes up the 32 KiB that a verdict may hold. */
const MAX_OUTPUT_BYTES = 27 * 1024
/** Of a runner whose account is its output, all of that has to be there. */
const MAX_REPORT_OUTPUT_BYTES = 32 * 1024 * 1024
const MAX_LISTED = 20
const PERF_RUNS = 3

/** Variables that keep a check from asking questions, watching files, or colouring its output. */
const QUIET: Readonly<Record<string, string>> = {
  CI: '1',
  NO_COLOR: '1',
  TERM: 'dumb',
  // Settings of the user's own, in a file that an agent can write, may replace the shell of
  // scripts.
  npm_config_userconfig: '/dev/null',
  npm_config_update_notifier: 'false',
  npm_config_fund: 'false',
  npm_config_audit: 'false',
  // A compiled file that is written here and now may be taken for that of the next edit.
  PYTHONDONTWRITEBYTECODE: '1',
}

/**
 * Checks a goal once. Takes as long as its command, at most `spec.timeout_ms` (three times that for
 * a goal with `max_duration_ms`).
 *
 * @throws the signal's reason when it is aborted; an `Error` when the check itself could not be
 * made, for example for want of disk space.
 */
export async function checkGoal(spec: GoalSpec, context: GoalCheckContext): Promise<GoalVerdict> {
  const { signal } = context
  signal.throwIfAborted()
  const before = await filesChanged(spec, context)
  const folder = await ReportFolder.create(context.cwd)
  try {
    const env = { ...QUIET, ...spec.env }
    const variables = spec.reporter === null ? env : await folder.inject(spec.reporter, env)
    const run = await runCommand(spec, context, folder.wrap(spec.command), variables, folder.path)
    signal.throwIfAborted()
    const report = await readReport(spec, run, folder)
    const after = await filesChanged(spec, context)
    signal.throwIfAborted()
    return judge(spec, context, readable(spec, run), report, [...new Set([...before, ...after])])
  } finally {
    await folder.remove()
  }
}

async function readReport(
  spec: GoalSpec,
  run: CommandResult,
  folder: ReportFolder,
): Promise<TestReport | ReportProblem | null> {
  if (spec.reporter === null) return null
  return spec.reporter === 'go' && run.truncated ? 'too_large' : await folder.read(run.output)
}

/** What the check printed as people read it. */
function readable(spec: GoalSpec, run: CommandResult): CommandResult {
  if (spec.reporter !== 'go') return run
  return { ...run, output: headAndTail(readableGo(run.output), MAX_OUTPUT_BYTES) }
}

async function filesChanged(spec: GoalSpec, context: GoalCheckContext): Promise<readonly string[]> {
  if (spec.allow_test_changes) return []
  try {
    return await compareFiles(spec, context.cwd, context.baseline)
  } catch (error) {
    // A workspace that has grown too large to be watched cannot be vouched for.
    if (error instanceof GoalError) return [error.message]
    throw error
  }
}

/** Runs the command once, or until it was quick enough, at most three times. */
async function runCommand(
  spec: GoalSpec,
  context: GoalCheckContext,
  command: string,
  env: Readonly<Record<string, string>>,
  writable: string,
): Promise<CommandResult> {
  let best: CommandResult | undefined
  for (let i = 0; i < PERF_RUNS; i++) {
    const result = await context.executor.run(command, {
      cwd: context.cwd,
      env,
      timeoutMs: spec.timeout_ms,
      maxOutputBytes: spec.reporter === 'go' ? MAX_REPORT_OUTPUT_BYTES : MAX_OUTPUT_BYTES,
      mark: context.mark,
      writable: [writable],
      signal: context.signal,
    })
    if (best === undefined || result.durationMs < best.durationMs) best = result
    if (spec.max_duration_ms === undefined || result.durationMs <= spec.max_duration_ms)
      return result
    if (result.exitCode !== spec.success_exit_code || context.signal.aborted) return result
  }
  return best!
}

function judge(
  spec: GoalSpec,
  context: GoalCheckContext,
  run: CommandResult,
  report: TestReport | ReportProblem | null,
  changes: readonly string[],
): GoalVerdict {
  const reported =
    typeof report === 'object' && report !== null && !run.timedOut ? report.tests : null
  const counts = reported === null ? null : countTests(reported)
  // An empty set is no baseline: with none at all, the next check may still become one.
  const tests = counts === null || counts.total === 0 ? null : reported
  const problem = problemOf(spec, context, run, report, changes)
  return {
    achieved: problem === null,
    reason: problem ?? success(spec, run, counts?.passed ?? null, counts?.skipped ?? 0),
    verified_by: 'command',
    exit_code: run.exitCode,
    duration_ms: Math.round(run.durationMs),
    counts,
    tests,
    output: run.output + listing(changes),
  }
}

/** Why the goal is not met; null when it is. The first that applies, from cause to effect. */
function problemOf(
  spec: GoalSpec,
  context: GoalCheckContext,
  run: CommandResult,
  report: TestReport | ReportProblem | null,
  changes: readonly string[],
): string | null {
  if (changes.length > 0) return `tests changed: ${listChanges(changes)}`
  if (run.timedOut) return `check timed out after ${Math.round(spec.timeout_ms / 100) / 10} s`
  if (typeof report === 'string') return withoutReport(spec, run, report)
  if (report !== null) {
    const baseline = spec.allow_test_changes ? null : context.baselineTests
    const failure = failureOf(report.tests, baseline)
    if (failure !== null) return failure
    const change = baseline === null ? null : changeOf(report, baseline)
    if (change !== null) return change
    if (countTests(report.tests).passed === 0) return 'no tests ran'
  }
  if (run.exitCode !== spec.success_exit_code) return `exit code ${run.exitCode}`
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

function withoutReport(spec: GoalSpec, run: CommandResult, problem: ReportProblem): string {
  if (run.exitCode !== spec.success_exit_code && problem === 'absent') {
    const missing = /No module named '?(pytest)'?/.exec(run.output)?.[1]
    if (missing !== undefined)
      return `${missing} is not installed for the Python that runs the check`
    return `exit code ${run.exitCode}`
  }
  return REPORT_PROBLEMS[problem]
}

function success(
  spec: GoalSpec,
  run: CommandResult,
  passed: number | null,
  skipped: number,
): string {
  if (spec.max_duration_ms !== undefined) {
    return `took ${Math.round(run.durationMs)} ms, within ${spec.max_duration_ms} ms`
  }
  if (passed === null) return `exit code ${run.exitCode}`
  const tests = passed === 1 ? 'the only test passes' : `all ${passed} tests pass`
  return skipped === 0 ? tests : `${tests}, ${skipped} skipped as before`
}

/** All changes of protected files, for whoever has to undo them. */
function listing(changes: readonly string[]): string {
  if (changes.length === 0) return ''
  const shown = changes.slice(0, MAX_LISTED).map((change) => `- ${change}\n`)
  const more = changes.length > MAX_LISTED ? `- and ${changes.length - MAX_LISTED} more\n` : ''
  return `\nThese files belong to the check and must be as they were:\n${shown.join('')}${more}`
}
