import type { CommandOptions } from './executor.js'

/** How `ToolContext.run()` runs a command. */
export interface ToolCommandOptions extends Partial<CommandOptions> {
  /** Stops the command, as the end of the call does. */
  readonly signal?: AbortSignal
  /**
   * The arguments of a program: `command` is then its name or path, and no shell reads either, so
   * they may come from a model. One that begins with `-` is still an option of the program, unless
   * `--` or the like precedes it. As a quoted command line they have at most 131 071 bytes.
   *
   * @defaultValue `command` is a command line
   */
  readonly args?: readonly string[] | undefined
}
