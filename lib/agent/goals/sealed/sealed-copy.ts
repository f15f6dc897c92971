import { lstat, mkdir, rename, utimes } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Executor, IsolatedCopy } from '../../executor.js'
import { unreadable } from '../../exhaustion.js'
import type {
  GoalBaseline, GoalCheckContext, GoalSpec, GoalVerdict, KeptTests,
} from '../../goal.js'
import { isDependencyFolder } from '../../workspace/dependency-folders.js'
import { foldersAbove } from '../../workspace/net-changes.js'
import { checkGoal } from '../check.js'
import { captureBaseline, hashFiles } from '../protected-files.js'

/** The environment of checks in a copy. */
const ENVIRONMENT: Readonly<Record<string, string>> = {
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_NO_REPLACE_OBJECTS: '1',
}

const OUTPUT_TIMEOUT_MS = 30_000
const MAX_OUTPUT_BYTES = 256 * 1024

/** What was put into a copy beside the files of the folder. */
export interface PutIn {
  /** Of files that were put there for the check. */
  readonly hashes?: GoalBaseline['files']
  /** Files of the check that are the run's, and therefore as it left them. */
  readonly own?: ReadonlySet<string>
}

/** A sealed copy, in which checks run. */
export class SealedCopy {
  readonly root: string
  readonly #executor: Executor
  readonly #context: GoalCheckContext
  readonly #baseline: GoalBaseline
  readonly #aside: string

  constructor(copy: IsolatedCopy, executor: Executor, context: GoalCheckContext) {
    this.root = copy.root
    this.#aside = join(dirname(copy.root), '.left-out')
    this.#context = context
    this.#executor = {
      name: executor.name,
      killMarked: (mark) => executor.killMarked(mark),
      run: (command, options) => executor.run(command, { ...options, isolated: copy }),
    }
    // Dependencies are compared where they were installed: here, they may be mounted.
    const files = Object.entries(context.baseline.files).filter(([path]) => !isInstalled(path))
    this.#baseline = { files: Object.fromEntries(files) }
  }

  /**
   * Checks without a limit on the time. If that passes, the limit of the goal is checked in further
   * runs of the command, for which the first one has warmed up the caches.
   *
   */
  async check(
    goal: GoalSpec,
    baselineTests: KeptTests | null,
    put: PutIn = {},
  ): Promise<GoalVerdict> {
    const { max_duration_ms: limit, ...unlimited } = goal
    const verdict = await this.#check(unlimited, baselineTests, put)
    if (limit === undefined || !verdict.achieved) return verdict
    const limited = await this.#check(goal, baselineTests, put)
    return limited.achieved ? verdict : limited
  }

  async #check(
    goal: GoalSpec,
    baselineTests: KeptTests | null,
    { hashes = {}, own: ofRun = new Set() }: PutIn,
  ): Promise<GoalVerdict> {
    const env = { ...ENVIRONMENT, ...goal.env }
    const before = Object.entries(this.#baseline.files).filter(([path]) => !ofRun.has(path))
    const asLeft = await hashFiles(this.root, [...ofRun])
    const files = { ...Object.fromEntries(before), ...asLeft, ...hashes }
    const verdict = await checkGoal({ ...goal, ...ownGlobs(goal), env }, {
      executor: this.#executor,
      cwd: this.root,
      mark: this.#context.mark,
      signal: this.#context.signal,
      untilPossible: this.#context.untilPossible,
      baselineTests,
      areTestsLate: this.#context.areTestsLate,
      isFirst: this.#context.isFirst === true && baselineTests === null,
      baseline: { files },
    })
    return { ...verdict, assurance: { ...verdict.assurance, sealed: true } }
  }

  /** Makes paths into the copy relative in a verdict: the copy is removed after the check. */
  withoutPlace(verdict: GoalVerdict): GoalVerdict {
    const output = verdict.output.replaceAll(`file://${this.root}/`, '')
      .replaceAll(`${this.root}/`, '').replaceAll(this.root, '.')
    return { ...verdict, output }
  }

  /** The hashes of all files in the copy that the goal protects, without dependencies. */
  async protectedFiles(goal: GoalSpec): Promise<GoalBaseline['files']> {
    const { files } = await captureBaseline({ ...goal, ...ownGlobs(goal) }, this.root)
    return Object.fromEntries(Object.entries(files).filter(([path]) => !isInstalled(path)))
  }

  /** What a command of ours prints in the copy; null when it fails. */
  async output(command: string): Promise<string | null> {
    const { mark, signal } = this.#context
    const { exitCode, output, truncated } = await this.#executor.run(`${command} 2> /dev/null`, {
      cwd: this.root, env: ENVIRONMENT, mark, signal, writable: [],
      timeoutMs: OUTPUT_TIMEOUT_MS, maxOutputBytes: MAX_OUTPUT_BYTES,
    })
    return exitCode === 0 && !truncated ? output : null
  }

  /** Takes files and folders out of the copy. */
  async putAside(paths: readonly string[]): Promise<void> {
    const all = new Set(paths)
    // A folder takes along what it holds.
    const outermost = paths.filter((path) => !foldersAbove(path).some((one) => all.has(one)))
    for (const path of outermost) await move(join(this.root, path), join(this.#aside, path))
  }

  /** Puts back what was put aside. */
  async putBack(paths: readonly string[]): Promise<void> {
    for (const path of paths) await move(join(this.#aside, path), join(this.root, path))
  }

  /** Gives files the times of their last change, in ms. */
  async setTimes(times: Readonly<Record<string, number>>): Promise<void> {
    for (const [path, ms] of Object.entries(times)) {
      const file = join(this.root, path)
      const stats = await lstat(file).catch(unreadable)
      if (stats?.isFile() === true) await utimes(file, 0, ms / 1000)
    }
  }
}

async function move(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true })
  await rename(from, to)
}

/** The globs of a goal that name no dependencies. */
function ownGlobs(
  { protected: globs, sealed = [] }: GoalSpec,
): Required<Pick<GoalSpec, 'protected' | 'sealed' | 'runner'>> {
  const own = (all: readonly string[]): string[] => all.filter((one) => !isInstalled(one))
  return { protected: own(globs), sealed: own(sealed), runner: [] }
}

/** True for a folder of dependencies and for everything below one. */
export function isInstalled(path: string): boolean {
  return path.split('/').some(isDependencyFolder)
}
