/**
 * The seam to processes: how the commands of tools and goal checks run.
 *
 * @module
 */

/** Where, with what limits and under whose control one command runs. */
export interface CommandOptions {
  /** Absolute path of the working directory, as commands see it. */
  readonly cwd: string
  /**
   * On Linux, a descriptor of that directory in this process, open until the command has ended. It
   * leads to the directory even if another one was put at its path in the meantime: an executor
   * that starts processes here uses `/proc/self/fd/<descriptor>` as their working directory, or
   * compares the two. Others may ignore it: the engine compares them before and after each command.
   */
  readonly cwdDescriptor?: number | undefined
  /** Variables added to the executor's scrubbed base environment. */
  readonly env: Readonly<Record<string, string>>
  /** Milliseconds until the command is stopped (SIGTERM, 2 s, SIGKILL), with exit code 124. */
  readonly timeoutMs: number
  /** Bytes of output kept: half from the beginning, half from the end, with a line between. */
  readonly maxOutputBytes: number
  /** Value of `RUNWRIGHT_RUN` in the environment, by which stray processes are found. */
  readonly mark: string
  /** Additional folders that the command may write to, for executors that confine commands. */
  readonly writable: readonly string[]
  /**
   * Set for runs that work in a copy of a folder. An executor that confines commands shows them the
   * copy, even below folders that it hides, and hides the original.
   */
  readonly isolated?: IsolatedCopy | undefined
  /** Stops the command with exit code 130: SIGTERM to its process group, SIGKILL after 2 s. */
  readonly signal: AbortSignal
  /**
   * Called once the process group exists and before the command's first instruction, which waits
   * until the promise resolves. If it rejects, or this process dies, the command never runs.
   */
  readonly onStart?: (pgid: number) => Promise<void>
}

/** The private copy of a folder in which a run works. */
export interface IsolatedCopy {
  /** Real path of the copy. */
  readonly root: string
  /** Real path of the folder that was copied. */
  readonly original: string
  /**
   * Folders of the original that commands see, unchangeable, at places in the copy. Only for
   * executors with {@link Executor.mountsFolders}.
   */
  readonly readOnly: readonly { readonly from: string; readonly to: string }[]
}

/**
 * Folders directly in `node_modules` in which programs cache what they can generate again. Some of
 * it is code that is loaded instead of its source. Sandboxes empty these folders where they mount
 * `node_modules`, and copies for sealed checks leave them out.
 */
export const PACKAGE_CACHES: ReadonlySet<string> = new Set(['.cache', '.vite', '.vite-temp'])

/** The result of a command; one that cannot be started has exit code 127, not an exception. */
export interface CommandResult {
  /** Its own, 128 + n after signal n, 124 timeout, 127 could not be started, 130 aborted. */
  readonly exitCode: number
  /** Standard output and standard error as interleaved on arrival; invalid UTF-8 is replaced. */
  readonly output: string
  /** True when the middle of the output was dropped to keep `maxOutputBytes`. */
  readonly truncated: boolean
  readonly timedOut: boolean
  readonly durationMs: number
}

/** Runs the shell commands of tools and goal checks. */
export interface Executor {
  readonly name: string
  /**
   * Runs one command with `/bin/sh -c` in a process group of its own. Resolves when the command has
   * ended or was stopped, even if a grandchild still holds its output open.
   *
   * @throws {@link ExhaustedError} when the machine cannot start a command right now, and nothing
   * of it has run.
   */
  run(command: string, options: CommandOptions): Promise<CommandResult>
  /** Does it mount the folders of {@link IsolatedCopy.readOnly}? Absent: it does not. */
  mountsFolders?(): Promise<boolean>
  /** Kills every process with `mark`; resolves with their number, 0 where `/proc` is missing. */
  killMarked(mark: string): Promise<number>
}
