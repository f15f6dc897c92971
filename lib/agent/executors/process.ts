import { randomUUID } from 'node:crypto'
import { checkOptions, type OptionKinds } from '../../internal/options.js'
import type { CommandOptions, CommandResult, Executor } from '../executor.js'
import {
  COMMAND_VARIABLE, redirectedEnvironment, RUN_VARIABLE, scrubbedEnvironment,
} from './environment.js'
import { holdArguments, runHeld } from './held-command.js'
import { killAll, markedProcesses } from './process-tree.js'

/** How {@link processExecutor} runs commands. */
export interface ProcessExecutorOptions {
  /**
   * Names of variables of this process that commands get besides the built-in ones (`PATH`,
   * `HOME`, `LANG` and similar); a trailing `*` stands for any ending. Never name a key here:
   * every command of a model could read it.
   */
  readonly env?: readonly string[] | undefined
  /** The shell that reads command lines. @defaultValue '/bin/sh' */
  readonly shell?: string | undefined
}

/** For `checkOptions()`. */
export const PROCESS_OPTIONS: OptionKinds<ProcessExecutorOptions> = {
  env: 'array',
  shell: 'string',
}

/**
 * Runs commands as processes of this user, each in a process group of its own and with a scrubbed
 * environment. Commands are ended reliably, but not confined: they can read what this user can,
 * this process's environment in `/proc` included. Where that matters, use
 * {@link bubblewrapExecutor} or a container.
 *
 * Background processes of an ended command live on until `killMarked`; their output is not kept.
 * When this process dies, so do the processes of commands that have not ended.
 */
export function processExecutor(options: ProcessExecutorOptions = {}): Executor {
  checkOptions(options, PROCESS_OPTIONS, 'processExecutor()')
  return new ProcessExecutor(options.env ?? [], options.shell ?? '/bin/sh')
}

/** See {@link processExecutor}. */
export class ProcessExecutor implements Executor {
  readonly name = 'process'
  readonly #env: readonly string[]
  readonly #shell: string

  constructor(env: readonly string[], shell: string) {
    this.#env = [...env]
    this.#shell = shell
  }

  get options(): ProcessExecutorOptions {
    return { env: this.#env, shell: this.#shell }
  }

  async run(command: string, options: CommandOptions): Promise<CommandResult> {
    const commandId = randomUUID()
    const marks = { [RUN_VARIABLE]: options.mark, [COMMAND_VARIABLE]: commandId }
    const launch = {
      file: this.#shell,
      args: holdArguments(this.#shell, command),
      // What a caller passes is passed as it is.
      env: {
        ...redirectedEnvironment(
          scrubbedEnvironment(process.env, this.#env, {}),
          options.isolated,
        ),
        ...options.env,
        ...marks,
      },
      cwd: options.cwd,
      cwdDescriptor: options.cwdDescriptor,
      commandId,
      leaderIsSandbox: false,
    }
    return await runHeld(launch, options)
  }

  async killMarked(mark: string): Promise<number> {
    return await killAll([markedProcesses(RUN_VARIABLE, mark)])
  }
}
