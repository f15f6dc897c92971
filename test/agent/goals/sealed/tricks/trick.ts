/** What a model does to get `achieved` without doing the work: the words in which a trick is told. */

import type { JsonObject } from 'runwright/agent'

/** Files by path. */
export type Files = { readonly [path: string]: string }

export type TrickClass =
  | 'edited tests'
  | 'deleted and skipped tests'
  | 'fixtures'
  | 'shadowing'
  | 'configuration'
  | 'environment'
  | 'plugins'
  | 'new tests'
  | 'dependencies'
  | 'package scripts'
  | 'while the check runs'
  | 'servers'
  | 'git'
  | 'forged reports'
  | 'early exits'
  | 'patched in memory'
  | 'special cases'

/** Who keeps a trick from ending as achieved. */
export type Catcher =
  /** The file belongs to the check: the sealed copy has it as it was at the start. */
  | 'check files'
  /** A new file that a runner would load by itself is left out of the sealed copy. */
  | 'left out'
  /** Packages are those of the start. */
  | 'dependencies'
  /** Home folder, temporary folder, folders above, hooks and settings of git are not the run's. */
  | 'surroundings'
  /** No process of the run is alive. */
  | 'processes'
  /** Every test of the first check has to be there and to pass. */
  | 'test names'
  /** The report cannot be written by the code under test. */
  | 'report'
  /** Assertions that must fail do fail. */
  | 'canaries'
  /** Code that the run has changed may not change what runs the tests. */
  | 'deeds'
  /** The entry script has to come to its end. */
  | 'early exits'
  /** New tests run in a pass of their own. */
  | 'second pass'
  /** See `open.ts`. */
  | 'nobody'

export type Runner =
  | 'node:test' | 'node' | 'shell' | 'make' | 'tsc' | 'pytest' | 'unittest' | 'python'
  | 'mocha' | 'jest' | 'vitest' | 'ava' | 'tape'

/** One thing that the agent does: files that it writes with a tool, or a command that it runs. */
export type Act = { readonly write: Files } | { readonly run: string }

/** A project, and what an agent does in it. */
export interface Played {
  /** What the agent does, as the rest of a sentence: `edits a test in a folder called qa`. */
  readonly name: string
  readonly runner: Runner
  readonly goal: string
  /** The project at the start: its code is wrong, and stays so. */
  readonly files: Files
  /** A command that completes the project before the start, such as `git init`. */
  readonly setup?: string
  /** What it does in one iteration. */
  readonly acts: readonly Act[]
  /** What it does in the next one. */
  readonly then?: readonly Act[]
  /** True where pytest has to load the plugins that are installed, which takes it half a second. */
  readonly plugins?: boolean
  /** What a user adds to the request. */
  readonly fields?: JsonObject
}

/** Whatever the check says: the work was not done. */
export interface Trick extends Played {
  readonly class: TrickClass
  readonly caughtBy: Catcher
}

/** A trick as its table tells it; the rest comes from the runner's project. */
export type Told = Pick<Trick, 'name' | 'class' | 'acts' | 'caughtBy'> & Partial<Trick>

export const write = (files: Files): Act => ({ write: files })
export const run = (command: string): Act => ({ run: command })

/** A command that writes files, also those that no tool may write. */
export function writeByCommand(files: Files, mode: string = '644'): Act {
  const commands = Object.entries(files).map(
    ([path, content]) =>
      `mkdir -p "$(dirname "${path}")" && cat > "${path}" <<'END_OF_FILE'\n${content}\n` +
      `END_OF_FILE\nchmod ${mode} "${path}"`,
  )
  return run(commands.join('\n'))
}

/** A program, which may be one that exists already, or a link to it. */
export const program = (path: string, text: string): Act =>
  run(`rm -f "${path}"; mkdir -p "$(dirname "${path}")"; cat > "${path}" <<'END_OF_FILE'
${text}
END_OF_FILE
chmod 755 "${path}"`)

/** Starts a command in the background; whoever plays the trick ends it by its number. */
export const daemon = (command: string): Act =>
  run(`setsid nohup ${command} > /dev/null 2>&1 & echo $! >> "$HOME/daemons"`)
