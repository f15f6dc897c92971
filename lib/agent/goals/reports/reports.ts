/**
 * Reports of test runners, written by a reporter of ours that lives, for one check, in a private
 * folder outside the workspace:
 *
 * 1. The folder is made for one check with a random name and mode 0700, and removed after it.
 * 2. Every line carries the check's nonce; a file with any other line counts for nothing.
 * 3. A report without its end marker is cut short, and so is the check.
 *
 * Lines are JSON arrays: `[nonce, "test", [file, suite…, title], outcome]`, `[nonce, "file", path]`
 * for a file that could not be loaded or stopped before its tests were done, `[nonce, "idle",
 * path]` for one that exited with 0 without a test, `[nonce, "end"]`.
 *
 * @module
 */
import { createHash, randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { mkdir, mkdtemp, open, readdir, realpath, rm, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { dirname, join, sep } from 'node:path'

import type { TestOutcome, TestOutcomes, TestReporter } from '../../goal.js'
import { injectBun, readBun } from './bun.js'
import { injectCargo, readCargo } from './cargo.js'
import { injectGo, readGo } from './go.js'
import { injectJavaScript } from './javascript.js'
import { injectNodeTest } from './node-test.js'
import { injectPytest } from './pytest.js'
import { injectUnittest } from './unittest.js'

const MAX_REPORT_BYTES = 32 * 1024 * 1024
const MAX_REPORT_FILES = 200
const MAX_TESTS = 50_000
const MAX_NAME = 400

/** Joins the parts of a test's name: file, suites, title. */
export const NAME_SEPARATOR = ' > '

/** What a reporter needs in place before the runner starts. */
export interface ReportInjection {
  /** Content of files in the private folder, by name. */
  readonly files: Readonly<Record<string, string>>
  /** The same of files that are programs. */
  readonly programs?: Readonly<Record<string, string>>
  /** Variables for the command, merged with what is there by {@link mergeEnv}. */
  readonly env: Readonly<Record<string, string>>
}

/** Where a reporter works. */
export interface ReportPlace {
  /** The private folder of the check. */
  readonly folder: string
  readonly nonce: string
  /** The workspace, which files are named relative to. */
  readonly root: string
}

/** One test as a runner's own account tells of it; with one name only, a file that is broken. */
export interface ReportedTest {
  readonly names: readonly string[]
  readonly outcome: TestOutcome
}

/** What the reporter told. */
export interface TestReport {
  readonly tests: TestOutcomes
  /**
   * Files that ran, exited with 0 and told of no test: node:test knows them. Null where the names
   * of tests tell it, since they begin with the file that holds them.
   */
  readonly idle: readonly string[] | null
}

/** Why there is nothing to go by. */
export type ReportProblem = 'absent' | 'incomplete' | 'invalid' | 'too_large'

/** The private folder of one check. */
export class ReportFolder {
  readonly path: string
  readonly #place: ReportPlace
  #reporter: TestReporter | null = null

  private constructor(place: ReportPlace) {
    this.path = place.folder
    this.#place = place
  }

  /** Makes a folder that does not lie in `cwd`. */
  static async create(cwd: string): Promise<ReportFolder> {
    const nonce = randomBytes(12).toString('hex')
    const folder = await mkdtemp(join(await outside(cwd), 'runwright-check-'))
    return new ReportFolder({ folder, nonce, root: await realpath(cwd).catch(() => cwd) })
  }

  /** Puts the reporter in place and returns the goal's variables with those that bring it in. */
  async inject(
    reporter: TestReporter,
    env: Readonly<Record<string, string>>,
  ): Promise<Record<string, string>> {
    this.#reporter = reporter
    const injection = INJECTIONS[reporter](this.#place, env['NODE_OPTIONS'] ?? '')
    for (const [mode, files] of [
      [0o600, injection.files],
      [0o700, injection.programs ?? {}],
    ] as const) {
      for (const [name, content] of Object.entries(files)) {
        await mkdir(dirname(join(this.path, name)), { recursive: true })
        await writeFile(join(this.path, name), content, { mode, flag: 'wx' })
      }
    }
    return mergeEnv(env, injection.env)
  }

  /**
   * The command as it is run: one that sets NODE_OPTIONS itself finds our `node` first on PATH.
   */
  wrap(command: string): string {
    if (this.#reporter === null || !HOOKED.has(this.#reporter)) return command
    return `PATH="${this.path}/bin:$PATH"; export PATH\n${command}`
  }

  /** Reads what was reported; `output` is what the check printed. */
  async read(output: string): Promise<TestReport | ReportProblem> {
    const reporter = this.#reporter
    if (reporter === 'go') return collect(readGo(output))
    if (reporter === 'cargo') return collect(await readCargo(this.path, this.#place.nonce))
    if (reporter === 'bun') return collect(await readBun(this.path))
    return await this.#readLines()
  }

  /** Reads our own lines: a check may have started the runner more than once. */
  async #readLines(): Promise<TestReport | ReportProblem> {
    const names = (await readdir(this.path)).filter((name) => /^report-\d+-\d+\.jsonl$/.test(name))
    if (names.length === 0) return 'absent'
    if (names.length > MAX_REPORT_FILES) return 'too_large'
    names.sort((a, b) => (startedAt(a) < startedAt(b) ? -1 : 1))
    const outcomes = new Map<string, TestOutcome>()
    const idle: string[] = []
    for (const name of names) {
      const content = await readBounded(join(this.path, name))
      if (content === null) return 'too_large'
      const problem = takeLines(content, this.#place.nonce, outcomes, idle)
      if (problem !== null) return problem
    }
    return {
      tests: Object.fromEntries(outcomes),
      idle: this.#reporter === 'node-test' ? idle : null,
    }
  }

  /** Removes the folder and everything in it. */
  async remove(): Promise<void> {
    // What a process left behind by the check still writes there is no reason to fail it.
    await rm(this.path, { recursive: true, force: true, maxRetries: 3 }).catch(() => undefined)
  }
}

const INJECTIONS: Readonly<
  Record<TestReporter, (place: ReportPlace, nodeOptions: string) => ReportInjection>
> = {
  'node-test': injectNodeTest,
  jest: injectJavaScript,
  vitest: injectJavaScript,
  mocha: injectJavaScript,
  pytest: injectPytest,
  unittest: injectUnittest,
  cargo: injectCargo,
  go: injectGo,
  bun: injectBun,
}

/** Runners that our hook finds. */
const HOOKED: ReadonlySet<TestReporter> = new Set(['jest', 'vitest', 'mocha'])

function collect(tests: readonly ReportedTest[] | ReportProblem): TestReport | ReportProblem {
  if (typeof tests === 'string') return tests
  if (tests.length > MAX_TESTS) return 'too_large'
  const outcomes = new Map<string, TestOutcome>()
  for (const { names, outcome } of tests) {
    if (names.length === 1) outcomes.set(shorten(names[0]!), outcome)
    else addTest(outcomes, names, outcome)
  }
  return { tests: Object.fromEntries(outcomes), idle: null }
}

/** Variables of the goal and of the reporter together; lists are joined, ours first. */
function mergeEnv(
  goal: Readonly<Record<string, string>>,
  ours: Readonly<Record<string, string>>,
): Record<string, string> {
  const merged = { ...goal }
  for (const [name, value] of Object.entries(ours)) {
    const own = merged[name]
    merged[name] =
      own === undefined || own === '' ? value : `${value}${name === 'PYTHONPATH' ? ':' : ' '}${own}`
  }
  return merged
}

function startedAt(name: string): bigint {
  return BigInt(/^report-(\d+)-/.exec(name)![1]!)
}

function takeLines(
  content: string,
  nonce: string,
  outcomes: Map<string, TestOutcome>,
  idle: string[],
): ReportProblem | null {
  const lines = content.split('\n')
  if (lines.pop() !== '') return 'incomplete'
  let ended = false
  for (const line of lines) {
    let parsed: unknown
    try {
      parsed = JSON.parse(line)
    } catch {
      return 'invalid'
    }
    if (!Array.isArray(parsed) || parsed[0] !== nonce || ended) return 'invalid'
    const [, kind, subject, outcome] = parsed as unknown[]
    if (kind === 'end') ended = true
    else if (kind === 'file' && typeof subject === 'string') outcomes.set(shorten(subject), 'fail')
    else if (kind === 'idle' && typeof subject === 'string') idle.push(shorten(subject))
    else if (kind === 'test' && isNames(subject) && isOutcome(outcome))
      addTest(outcomes, subject, outcome)
    else return 'invalid'
    if (outcomes.size + idle.length > MAX_TESTS) return 'too_large'
  }
  return ended ? null : 'incomplete'
}

/** Two tests may bear one name; the second is told apart by a number, in report order. */
function addTest(
  outcomes: Map<string, TestOutcome>,
  names: readonly string[],
  outcome: TestOutcome,
): void {
  const full = shorten(
    names.map((name) => name.replaceAll(/[\s\p{Cc}]+/gu, ' ')).join(NAME_SEPARATOR),
  )
  let name = full
  for (let i = 2; outcomes.has(name); i++) name = `${full} (${i})`
  outcomes.set(name, outcome)
}

function shorten(name: string): string {
  if (name.length <= MAX_NAME) return name
  const digest = createHash('sha256').update(name).digest('hex')
  return `${name.slice(0, MAX_NAME - 20)}…${digest.slice(0, 16)}`
}

function isNames(value: unknown): value is readonly string[] {
  return (
    Array.isArray(value) && value.length >= 2 && value.every((part) => typeof part === 'string')
  )
}

function isOutcome(value: unknown): value is TestOutcome {
  return value === 'pass' || value === 'fail' || value === 'skip'
}

async function readBounded(path: string): Promise<string | null> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const stats = await file.stat()
    if (!stats.isFile() || stats.size > MAX_REPORT_BYTES) return null
    return await file.readFile('utf8')
  } finally {
    await file.close()
  }
}

/** A folder for temporary files that is not in the workspace. */
async function outside(cwd: string): Promise<string> {
  const candidates = [tmpdir(), process.env['XDG_RUNTIME_DIR'], '/dev/shm', homedir(), dirname(cwd)]
  for (const candidate of candidates) {
    if (candidate === undefined || candidate === '') continue
    const real = await realpath(candidate).catch(() => null)
    if (real !== null && real !== cwd && !real.startsWith(cwd.endsWith(sep) ? cwd : cwd + sep))
      return real
  }
  return tmpdir()
}
