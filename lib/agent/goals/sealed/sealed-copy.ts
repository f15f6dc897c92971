import { chmod, lstat, mkdir, rename, utimes } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Executor, IsolatedCopy } from '../../executor.js'
import { unreadable } from '../../exhaustion.js'
import type {
  GoalBaseline, GoalCheckContext, GoalSpec, GoalVerdict, KeptTests,
} from '../../goal.js'
import { isDependencyFolder } from '../../workspace/dependency-folders.js'
import { checkGoal } from '../check.js'

/** The environment of checks in a copy. */
const ENVIRONMENT: Readonly<Record<string, string>> = {
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_NO_REPLACE_OBJECTS: '1',
}

const OUTPUT_TIMEOUT_MS = 30_000
const MAX_OUTPUT_BYTES = 256 * 1024

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
   * @param hashes of files that were put into the copy
   */
  async check(
    goal: GoalSpec,
    baselineTests: KeptTests | null,
    hashes: GoalBaseline['files'] = {},
  ): Promise<GoalVerdict> {
    const { max_duration_ms: limit, ...unlimited } = goal
    const verdict = await this.#check(unlimited, baselineTests, hashes)
    if (limit === undefined || !verdict.achieved) return verdict
    const limited = await this.#check(goal, baselineTests, hashes)
    return limited.achieved ? verdict : limited
  }

  async #check(
    goal: GoalSpec,
    baselineTests: KeptTests | null,
    hashes: GoalBaseline['files'],
  ): Promise<GoalVerdict> {
    const own = (globs: readonly string[]): string[] => globs.filter((one) => !isInstalled(one))
    const globs = { protected: own(goal.protected), sealed: own(goal.sealed ?? []), runner: [] }
    const env = { ...ENVIRONMENT, ...goal.env }
    const verdict = await checkGoal({ ...goal, ...globs, env }, {
      executor: this.#executor,
      cwd: this.root,
      mark: this.#context.mark,
      signal: this.#context.signal,
      untilPossible: this.#context.untilPossible,
      baselineTests,
      isFirst: this.#context.isFirst === true && baselineTests === null,
      baseline: { files: { ...this.#baseline.files, ...hashes } },
    })
    return { ...verdict, assurance: { ...verdict.assurance, sealed: true } }
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

  async putAside(paths: readonly string[]): Promise<void> {
    for (const path of paths) await move(join(this.root, path), join(this.#aside, path))
  }

  /** Makes files look older than all others, so that make makes them again. */
  async makeOld(paths: readonly string[]): Promise<void> {
    for (const path of paths) {
      // What was put aside is not there.
      await utimes(join(this.root, path), 0, 0).catch(unreadable)
    }
  }

  /** Gives files the times of their last change, in ms. */
  async setTimes(times: Readonly<Record<string, number>>): Promise<void> {
    for (const [path, ms] of Object.entries(times)) {
      const file = join(this.root, path)
      const stats = await lstat(file).catch(unreadable)
      if (stats?.isFile() === true) await utimes(file, 0, ms / 1000)
    }
  }

  /** Makes files programs again that were such at the start: a check may pass over others. */
  async makeExecutable(paths: readonly string[]): Promise<void> {
    for (const path of paths) {
      const stats = await lstat(join(this.root, path)).catch(unreadable)
      if (stats?.isFile() !== true || (stats.mode & 0o100) !== 0) continue
      await chmod(join(this.root, path), stats.mode | 0o111)
    }
  }

  async putBack(paths: readonly string[]): Promise<void> {
    for (const path of paths) await move(join(this.#aside, path), join(this.root, path))
  }
}

async function move(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true })
  await rename(from, to)
}

function isInstalled(path: string): boolean {
  return path.split('/').some(isDependencyFolder)
}
