/** Workspaces, an executor that records its calls, and whole checks. */
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { TestContext } from 'node:test'

import {
  processExecutor,
  type CommandOptions,
  type CommandResult,
  type Executor,
  type GoalBaseline,
  type GoalSpec,
  type GoalVerdict,
  type KeptTests,
} from 'runwright/agent'
import { checkGoal } from '../../../lib/agent/goals/check.js'
import type { ResolveOptions } from '../../../lib/agent/goals/goal-registry.js'
import { goalRegistry } from '../../../lib/agent/goals/registry.js'
import { captureBaseline } from '../../../lib/agent/goals/protected-files.js'

/** Files of a workspace by path. */
export type Files = { readonly [path: string]: string }

/** A folder with these files, removed after the test. */
export async function workspace(t: TestContext, files: Files): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'goal-test-')))
  t.after(() => rm(folder, { recursive: true, force: true }))
  await put(folder, files)
  return folder
}

/** Writes files below a folder. */
export async function put(folder: string, files: Files): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), content)
  }
}

/** Skips pytest's installed plugins, which take longer to load than any test here. */
const FAST = { PYTEST_DISABLE_PLUGIN_AUTOLOAD: '1' }

/** The shipped executor, with a record of its calls. */
export class RecordingExecutor implements Executor {
  readonly name = 'recording'
  readonly calls: { readonly command: string; readonly options: CommandOptions }[] = []
  /** Called before each command. */
  onRun: (options: CommandOptions) => void = () => {}
  /** Variables besides those of the check. */
  env: Readonly<Record<string, string>> = {}
  readonly #executor: Executor = processExecutor()

  run(command: string, options: CommandOptions): Promise<CommandResult> {
    this.calls.push({ command, options })
    this.onRun(options)
    return this.#executor.run(command, {
      ...options,
      env: { ...FAST, ...this.env, ...options.env },
    })
  }

  killMarked(mark: string): Promise<number> {
    return this.#executor.killMarked(mark)
  }
}

/** A goal in a workspace, checked as a run does: baseline, first check, later checks. */
export class Pursuit {
  readonly spec: GoalSpec
  readonly cwd: string
  readonly baseline: GoalBaseline
  readonly executor: RecordingExecutor = new RecordingExecutor()
  baselineTests: KeptTests | null = null
  areTestsLate = false
  #checks = 0

  private constructor(spec: GoalSpec, cwd: string, baseline: GoalBaseline) {
    this.spec = spec
    this.cwd = cwd
    this.baseline = baseline
  }

  static async start(cwd: string, goal: string, options: ResolveOptions = {}): Promise<Pursuit> {
    const resolved = await goalRegistry().resolve(goal, cwd, options)
    const spec = JSON.parse(JSON.stringify(resolved)) as GoalSpec // as it comes back from a log
    return new Pursuit(spec, cwd, await captureBaseline(spec, cwd))
  }

  async check(signal: AbortSignal = new AbortController().signal): Promise<GoalVerdict> {
    const { areTestsLate, executor, cwd, baseline, baselineTests } = this
    const verdict = await checkGoal(this.spec, {
      executor,
      cwd,
      mark: 'm',
      signal,
      baselineTests,
      areTestsLate,
      isFirst: this.#checks === 0,
      baseline,
    })
    if (baselineTests === null && verdict.tests !== null) this.areTestsLate = this.#checks > 0
    this.baselineTests ??= verdict.tests
    this.#checks += 1
    return verdict
  }
}
