/** What the tests of goals share: workspaces, a small executor, and whole checks. */
import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { TestContext } from 'node:test'

import { captureBaseline, checkGoal, goalRegistry } from '../../../lib/agent/goals/index.js'
import type { ResolveOptions } from '../../../lib/agent/goals/index.js'
import type { CommandOptions, CommandResult, Executor } from '../../../lib/agent/executor.js'
import type { GoalBaseline, GoalSpec, GoalVerdict, TestOutcomes } from '../../../lib/agent/goal.js'

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

/** Leaves out pytest's installed plugins, which take longer to load than any test here. */
const FAST = { PYTEST_DISABLE_PLUGIN_AUTOLOAD: '1' }

/** Runs commands with a short environment, as the real executors do, and remembers what it got. */
export class PlainExecutor implements Executor {
  readonly name = 'plain'
  readonly calls: { readonly command: string; readonly options: CommandOptions }[] = []

  run(command: string, options: CommandOptions): Promise<CommandResult> {
    this.calls.push({ command, options })
    const started = performance.now()
    const child = spawn('/bin/sh', ['-c', command], {
      cwd: options.cwd,
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...FAST, ...options.env },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    let output = ''
    let ended: 'timeout' | 'abort' | null = null
    const end = (why: 'timeout' | 'abort'): void => {
      ended ??= why
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    }
    const abort = (): void => end('abort')
    options.signal.addEventListener('abort', abort)
    const timer = setTimeout(() => end('timeout'), options.timeoutMs)
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
    }
    return new Promise((resolve) => {
      child.on('close', (code) => {
        clearTimeout(timer)
        options.signal.removeEventListener('abort', abort)
        const exitCode = ended === 'timeout' ? 124 : ended === 'abort' ? 130 : (code ?? 137)
        const durationMs = performance.now() - started
        resolve({ exitCode, output, truncated: false, timedOut: ended === 'timeout', durationMs })
      })
    })
  }

  async killMarked(): Promise<number> {
    return 0
  }
}

/** A goal in a workspace, checked as a run would: baseline, first check, later ones. */
export class Pursuit {
  readonly spec: GoalSpec
  readonly cwd: string
  readonly baseline: GoalBaseline
  readonly executor: PlainExecutor = new PlainExecutor()
  baselineTests: TestOutcomes | null = null

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
    const { executor, cwd, baseline, baselineTests } = this
    const verdict = await checkGoal(this.spec, { executor, cwd, mark: 'm', signal, baselineTests, baseline })
    this.baselineTests ??= verdict.tests
    return verdict
  }
}
