import type { Deed } from '../../check-files.js'
import type { TestOutcome, TestOutcomes } from '../../test-outcomes.js'
import type { ShellCommand, ShellWord } from '../shell-commands.js'
import type { FailedTest } from './failed-tests.js'
import type { TestTable } from './test-table.js'

export type { Deed } from '../../check-files.js'

/** What must be in place before the runner starts. */
export interface ReportInjection {
  /** Content of files in the private folder, by name. */
  readonly files: Readonly<Record<string, string>>
  /** The same for executable files. */
  readonly programs?: Readonly<Record<string, string>>
  /** Variables for the command; where the goal sets one as well, both values are joined. */
  readonly env: Readonly<Record<string, string>>
  /** A folder that the command puts first on PATH. */
  readonly path?: string
}

export interface ReportPlace {
  /** The private folder of the check. */
  readonly folder: string
  /** Unguessable text that marks every line of the report as written by our reporter. */
  readonly nonce: string
  /** Real path of the workspace; reported file names are relative to it. */
  readonly root: string
}

/** One test as the runner reports it; a single name is a file or package that is broken. */
export interface ReportedTest {
  readonly names: readonly string[]
  readonly outcome: TestOutcome
  /** Why it failed. */
  readonly message?: string
}

export interface TestReport {
  /** By name; those of a big suite by hash. */
  readonly tests: TestOutcomes | TestTable
  /**
   * Files that ran, exited with 0 and reported no test. Null for runners that do not report such
   * files; there the names of tests begin with the file that holds them.
   */
  readonly idle: readonly string[] | null
  /** The first tests and files that failed. */
  readonly failed: readonly FailedTest[]
  /** Files that reported tests. */
  readonly files: readonly string[]
  /** True when assertions that must fail did fail, at the end of all that ran tests. */
  readonly canaries: boolean
  /** Assertions that did not fail, by name. */
  readonly broken: readonly string[]
  /** Files of tests, or `*` for a whole run, whose canaries were kept from their end. */
  readonly silenced: readonly string[]
  /** What was done to the runner and the functions it is built on, in its processes. */
  readonly deeds: readonly Deed[]
}

/** What the canaries of one check found. */
export interface CanaryReport {
  /** Subjects of which the last canaries ran. */
  readonly ended: number
  /** Subjects of which they did not run: files of tests, or `*`. */
  readonly unfinished: readonly string[]
  /** Assertions that pass whatever they assert, by name. */
  readonly broken: readonly string[]
  /** Tests that the processes which ran them counted; null where they do not count. */
  readonly seen: SeenTests | null
  /** Who has registered hooks, changed tests or replaced functions. */
  readonly deeds: readonly Deed[]
}

/** Tests that passed and failed, by number. */
export interface SeenTests {
  readonly passed: number
  readonly failed: number
}

/** What of a report is compared with that of the first check. */
export type ComparedReport = Pick<TestReport, 'tests' | 'idle'>

/** Why a report cannot be used. */
export type ReportProblem = 'absent' | 'incomplete' | 'invalid' | 'too_large'

/** A test runner whose report we can read. */
export interface TestRunner {
  /** How the runner is recognised; null for one that only its own goal starts. */
  readonly command: {
    /** The word with which the runner begins in a command that starts it. */
    readonly starts: (command: ShellCommand) => ShellWord | undefined
    /** True for the text of a command or script that would keep our reporter out. */
    readonly avoids?: (text: string) => boolean
  } | null
  /** What makes the runner report; `env` holds the goal's variables. */
  inject(place: ReportPlace, env: Readonly<Record<string, string>>): ReportInjection
  /** Reads the report after the command has ended; `output` is what the command printed. */
  read(place: ReportPlace, output: string): Promise<TestReport | ReportProblem>
  /**
   * Files, folders and links of the runner's own packages as installed in the workspace `cwd`,
   * relative to it.
   */
  packages(cwd: string): Promise<readonly string[]>
  /** NODE_OPTIONS that a check needs which is known to run `scripts`. */
  nodeOptions?(scripts: string): string
  /**
   * For a runner whose report is its output, which must therefore be kept whole: that output as
   * people read it.
   */
  readable?(output: string): Promise<string>
}
