import type { CommandOptions, CommandResult, Executor } from '../executor.js'
import { autoExecutor, bubblewrapExecutor } from './bubblewrap.js'
import { processExecutor } from './process.js'

/** Executors that go by a name. */
export type ExecutorName = 'process' | 'bubblewrap' | 'auto'

/**
 * The executor by its name, or the one that is given. In a sandbox, `closed` folders are not there:
 * the data of the service itself.
 *
 * @throws TypeError for a name that is not known.
 */
export function executorNamed(
  choice: ExecutorName | Executor,
  closed: readonly string[],
): Executor {
  if (typeof choice === 'object' && choice !== null) return choice
  switch (choice) {
    case 'process':
      return processExecutor()
    case 'bubblewrap':
      return bubblewrapExecutor({ closed })
    case 'auto':
      return new AutoExecutor(closed)
    default:
      throw new TypeError(
        `executor must be 'process', 'bubblewrap', 'auto' or an object, got ${String(choice)}`,
      )
  }
}

/** Finds out what works here when the first command is to run. */
class AutoExecutor implements Executor {
  readonly #closed: readonly string[]
  #found: Promise<Executor> | undefined
  #name = 'auto'

  constructor(closed: readonly string[]) {
    this.#closed = closed
  }

  /** `auto` until the first command, then that of the executor that is used. */
  get name(): string {
    return this.#name
  }

  async run(command: string, options: CommandOptions): Promise<CommandResult> {
    return await (await this.#executor()).run(command, options)
  }

  async killMarked(mark: string): Promise<number> {
    return await (await this.#executor()).killMarked(mark)
  }

  async #executor(): Promise<Executor> {
    this.#found ??= autoExecutor({ closed: this.#closed })
    const executor = await this.#found
    this.#name = executor.name
    return executor
  }
}
