import type { CommandOptions, CommandResult, Executor } from '../executor.js'
import { autoExecutor, bubblewrapExecutor } from './bubblewrap.js'
import { processExecutor } from './process.js'

/** The executors that configuration selects by name. */
export type ExecutorName = 'process' | 'bubblewrap' | 'auto'

/**
 * The executor of that name, or the given executor. A sandbox hides the `closed` folders, which
 * hold the data of the service itself.
 *
 * @throws TypeError for an unknown name.
 */
export function executorNamed(
  choice: ExecutorName | Executor,
  closed: readonly string[],
): Executor {
  if (typeof choice === 'object' && choice !== null) {
    for (const method of ['run', 'killMarked'] as const) {
      if (typeof choice[method] === 'function') continue
      throw new TypeError(`executor has no method ${method}(): give an executor, or its name`)
    }
    return choice
  }
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

/** Chooses the executor when it is first needed, since probing bubblewrap takes a process. */
class AutoExecutor implements Executor {
  readonly #closed: readonly string[]
  #found: Promise<Executor> | undefined
  #name = 'auto'

  constructor(closed: readonly string[]) {
    this.#closed = closed
  }

  /** `auto` until the first use, then the name of the chosen executor. */
  get name(): string {
    return this.#name
  }

  async run(command: string, options: CommandOptions): Promise<CommandResult> {
    return await (await this.#executor()).run(command, options)
  }

  async mountsFolders(): Promise<boolean> {
    return (await (await this.#executor()).mountsFolders?.()) ?? false
  }

  async killMarked(mark: string): Promise<number> {
    return await (await this.#executor()).killMarked(mark)
  }

  async #executor(): Promise<Executor> {
    this.#found ??= autoExecutor({ closed: this.#closed }).catch((error: unknown) => {
      this.#found = undefined
      throw error
    })
    const executor = await this.#found
    this.#name = executor.name
    return executor
  }
}
