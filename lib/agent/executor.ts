/**
 * The seam to processes: how commands of tools and goal checks run.
 *
 * @module
 */

/** How one command runs. */
export interface CommandOptions {
  /** Absolute path of the working directory. */
  readonly cwd: string
  /** Variables added to the executor's scrubbed base environment. */
  readonly env: Readonly<Record<string, string>>
  /** Milliseconds until the command is ended (SIGTERM, 2 s, SIGKILL), with exit code 124. */
  readonly timeoutMs: number
  /** Octets of output kept: the first half and the last half, with a line between. */
  readonly maxOutputBytes: number
  /** Written into the environment as `RUNWRIGHT_RUN`, so that strays can be found. */
  readonly mark: string
  /** Further folders that the command may write to, for executors that confine. */
  readonly writable: readonly string[]
  /** Ends the command with exit code 130: SIGTERM to its process group, SIGKILL after 2 s. */
  readonly signal: AbortSignal
  /**
   * Called once the process group exists and before the command's first instruction, which waits
   * until the promise resolves. If it rejects, or this process dies, the command never runs.
   */
  readonly onStart?: (pgid: number) => Promise<void>
}

/** How a command ended. Never an exception: a command that can't be started has exit code 127. */
export interface CommandResult {
  /** The process's own, 128 + n when signal n ended it, 124 timeout, 127 not startable, 130 aborted. */
  readonly exitCode: number
  /** Standard output and standard error, interleaved as they came, invalid UTF-8 replaced. */
  readonly output: string
  /** True when `maxOutputBytes` cut the middle out. */
  readonly truncated: boolean
  readonly timedOut: boolean
  readonly durationMs: number
}

/** Runs shell command lines. */
export interface Executor {
  readonly name: string
  /**
   * Runs one command line with `/bin/sh -c` in a process group of its own and resolves when it has
   * ended, or was ended, even if a grandchild still holds its output open.
   */
  run(command: string, options: CommandOptions): Promise<CommandResult>
  /** Ends every process that carries `mark`; resolves with their number (0 where `/proc` is missing). */
  killMarked(mark: string): Promise<number>
}
