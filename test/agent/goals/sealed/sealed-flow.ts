import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import {
  MemoryStore, type CommandOptions, type CommandResult, type Executor, type GoalBaseline,
  type GoalCheckContext, type GoalSpec, type TestOutcomes,
} from 'runwright/agent'
import { joinSeals, type FilesAtStart, type StoredSeal } from '../../../../lib/agent/check-files.js'
import { StartFiles } from '../../../../lib/agent/checkpoints/run-checkpoints.js'
import type { HoldoutRun } from '../../../../lib/agent/goals/holdout/held-out-tests.js'
import { captureBaseline } from '../../../../lib/agent/goals/protected-files.js'
import { CANARY_FOLDER } from '../../../../lib/agent/goals/reports/canaries.js'
import type { CopyFolders } from '../../../../lib/agent/goals/sealed/check-copies.js'
import {
  SealedChecks, type SealedChecksOptions,
} from '../../../../lib/agent/goals/sealed/sealed-check.js'
import type { SealedVerdict } from '../../../../lib/agent/goals/sealed/sealing.js'
import { IsolatedFolders } from '../../../../lib/agent/isolation/isolated-folders.js'
import { readTree } from '../../../../lib/agent/workspace/read-tree.js'
import type { Tree } from '../../../../lib/agent/tree.js'
import { TrackedFolder, type Captured } from '../../../../lib/agent/workspace/tracked-folder.js'
import type { Files } from '../../../helpers/files.js'
import { World } from '../../../helpers/world.js'

/** Who did what to the runner: `['beforeEach', 'src/code.js']`. */
type Deeds = readonly (readonly [what: string, file: string | null])[]

/** One command that an executor was given. */
export interface Given {
  readonly cwd: string
  readonly command: string
  /** Null: in place. Otherwise the number of the copy, from 1. */
  readonly copy: number | null
  /** For reports. */
  readonly folder: string
  /** Variables of the command. */
  readonly env: Readonly<Record<string, string>>
  /** Writes what the reporter of node:test would report, and whether canaries ran. */
  readonly report: (outcomes: TestOutcomes, canaries?: boolean, deeds?: Deeds) => void
}

/** What commands do, as a function; returns an exit code, or that with time and output. */
export type Play = (given: Given) =>
  number | { readonly exitCode: number; readonly ms?: number; readonly output?: string }

/** A check that only its exit code decides. */
export const GOAL: GoalSpec = {
  name: 'shell',
  goal: 'shell: sh check.sh',
  command: 'sh check.sh',
  env: {},
  timeout_ms: 60_000,
  success_exit_code: 0,
  reporter: null,
  protected: ['check.sh', 'test/**'],
  sealed: [],
  runner: [],
  allow_test_changes: false,
  instructions: '',
}

/** One that the report of a runner decides. */
export const TESTS: GoalSpec = {
  ...GOAL,
  goal: 'node-test',
  command: 'node --test',
  reporter: 'node-test',
}

export const FILES: Files = {
  'check.sh': 'node test/a.test.js\n',
  'test/a.test.js': "require('../src/code.js'); require('node:assert')\n",
  'src/code.js': 'exports.a = 1\n',
  'qa/late.test.js': "require('node:test').test('late', () => {})\n",
}

/** What the run has done beside what a test has it do. */
const WORK = 'src/work.js'

/** Without checkpoints. */
const NOTHING: FilesAtStart = {
  hashOf: () => Promise.resolve(undefined),
  stored: () => Promise.resolve(new Map()),
  restore: () => Promise.resolve([]),
  changed: () => Promise.resolve(null),
  rewind: () => Promise.resolve(null),
}

/** The sealed checks of a run whose commands are functions, in real copies of a real folder. */
export class SealedFlow extends World {
  /** What has happened, in order. */
  readonly log: string[] = []
  /** How each copy was asked for. */
  readonly asked: (Parameters<CopyFolders['create']>[2])[] = []
  goal: GoalSpec = GOAL
  mode: SealedChecksOptions['mode'] = 'prefer'
  allowsDependencyChanges = false
  mayChange: readonly string[] = []
  holdout: HoldoutRun | null = null
  above: SealedChecksOptions['above'] = () => Promise.resolve(null)
  atStart: FilesAtStart = NOTHING
  maxBytes = 1e9
  /** Are the files of the start stored, as in a run with checkpoints? */
  isStored = true
  play: Play = () => 0
  /** What commands do in a copy of the start, once the run has worked: as the first check, at first. */
  playStart: Play = ({ report }) => {
    if (this.#tests !== null) report(this.#tests as TestOutcomes)
    return 1
  }
  /** Called when processes are to be ended. */
  onKill: () => void = () => undefined
  /** Called before a copy is made. */
  onCreate: () => void = () => undefined
  onRemove: () => void = () => undefined
  /** How checks wait for the machine. */
  untilPossible: GoalCheckContext['untilPossible'] = (work) => work()
  readonly aborting: AbortController = new AbortController()
  #baseline: GoalBaseline = { files: {} }
  #tests: GoalCheckContext['baselineTests'] = null
  #seal: StoredSeal | null = null
  #isLater = false

  constructor(t: TestContext, files: Files = FILES) {
    super(t, { files })
  }

  /** Names of what lies where copies are made. */
  get left(): readonly string[] {
    return readdirSync(this.copies)
  }

  /** The first check of the run. */
  async first(): Promise<SealedVerdict> {
    this.#baseline = await captureBaseline(this.goal, this.cwd)
    const stored = this.isStored ? await this.#store() : null
    const result = await this.#checks().first(this.goal, this.#context(true), stored)
    this.#tests = result.verdict.tests
    this.#seal = result.found
    this.#baseline = { files: { ...this.#baseline.files, ...result.found?.files } }
    this.log.length = 0
    this.asked.length = 0
    return result
  }

  /** A later one. */
  async later(): Promise<SealedVerdict> {
    this.write({ [WORK]: '' })
    this.#isLater = true
    const given = [this.#context(false), this.#seal!, this.atStart] as const
    const result = await this.#checks().later(this.goal, ...given)
    if (result.found === null) return result
    this.#seal = joinSeals(this.#seal, result.found)
    this.#baseline = { files: { ...this.#baseline.files, ...result.found.files } }
    return result
  }

  async #store(): Promise<Captured> {
    const { objects } = new MemoryStore()
    const tracked = new TrackedFolder()
    const captured = await tracked.capture(this.cwd, objects, { previous: null })
    const read = (): Promise<Tree> => readTree(objects, captured.checkpoint_id)
    this.atStart = new StartFiles(objects, read, () => tracked.manifest(this.cwd))
    return captured
  }

  /** What belongs to the check so far. */
  get files(): GoalBaseline['files'] {
    return this.#baseline.files
  }

  #context(isFirst: boolean): GoalCheckContext {
    const executor = this.#executor()
    const { untilPossible } = this
    return {
      executor, cwd: this.cwd, mark: 'flow', signal: this.aborting.signal, untilPossible,
      baselineTests: this.#tests, isFirst, baseline: this.#baseline,
    }
  }

  #checks(): SealedChecks {
    const { mode, allowsDependencyChanges, mayChange, above, holdout } = this
    const folders = this.#folders()
    return new SealedChecks({
      mode, allowsDependencyChanges, mayChange, above, holdout, runId: 'run', closed: [],
      mounted: [],
      folders: () => Promise.resolve(folders),
      executor: () => Promise.resolve(this.#executor()),
    })
  }

  #folders(): CopyFolders {
    const { copies: folder, maxBytes } = this
    const folders = new IsolatedFolders({ folder, maxBytes, closed: [] })
    const remove = async (runId: string, word: string): Promise<void> => {
      this.log.push(word)
      this.onRemove()
      await folders.remove(runId)
    }
    return {
      assertFits: (cwd, mounts) => folders.assertFits(cwd, mounts),
      create: async (runId, cwd, options) => {
        this.log.push('copy')
        this.asked.push(options)
        this.onCreate()
        return await folders.create(runId, cwd, options)
      },
      removeSoon: (runId) => remove(runId, 'removed'),
      remove: (runId) => remove(runId, 'gone'),
    }
  }

  #executor(): Executor {
    return {
      name: 'functions',
      killMarked: () => {
        this.log.push('killed')
        this.onKill()
        return Promise.resolve(0)
      },
      run: (command, options) => Promise.resolve(this.#run(command, options)),
    }
  }

  #run(command: string, { cwd, env, isolated, writable }: CommandOptions): CommandResult {
    const copy = isolated === undefined ? null : this.asked.length
    const isStart = this.#isLater && !existsSync(join(cwd, WORK))
    this.log.push(copy === null ? 'in place' : isStart ? 'start in copy' : 'in copy')
    const report: Given['report'] = (outcomes, canaries = false, deeds = []) =>
      writeReport(writable[0]!, outcomes, canaries, deeds)
    const play = isStart ? this.playStart : this.play
    const played = play({ cwd, command, copy, env, report, folder: writable[0]! })
    const result = typeof played === 'number' ? { exitCode: played } : played
    const { exitCode, ms = 1, output = '' } = result
    return { exitCode, output, truncated: false, timedOut: false, durationMs: ms }
  }
}

/** As the reporter of node:test does it; its name has what makes lines count. */
function writeReport(
  folder: string, outcomes: TestOutcomes, canaries: boolean, deeds: Deeds,
): void {
  const names = readdirSync(folder)
  const nonce = names.map((name) => /^reporter-(\w+)\.mjs$/.exec(name)?.[1]).find(Boolean)
  const lines = Object.entries(outcomes).map(([name, outcome]) =>
    name.includes(' > ') ? ['test', name.split(' > '), outcome] : ['file', name],
  )
  const text = [...lines, ['end']].map((line) => `${JSON.stringify([nonce, ...line])}\n`).join('')
  writeFileSync(join(folder, 'report-1-1.jsonl'), text)
  if (!canaries) return
  mkdirSync(join(folder, CANARY_FOLDER), { recursive: true })
  const ran = [['begin', 'a'], ['end', 'a', [], null, deeds]]
  const proof = ran.map((line) => `${JSON.stringify([nonce, ...line])}\n`).join('')
  writeFileSync(join(folder, CANARY_FOLDER, 'one.jsonl'), proof)
}
