import type { Executor } from '../executor.js'

/**
 * An executor whose commands begin only once it is certain that this process holds the claim on
 * their run: after a pause of the process, another one may hold it.
 */
export function claimedExecutor(executor: Executor, confirm: () => Promise<void>): Executor {
  return {
    name: executor.name,
    mountsFolders: async () => (await executor.mountsFolders?.()) ?? false,
    killMarked: (mark) => executor.killMarked(mark),
    run: (command, options) =>
      executor.run(command, {
        ...options,
        onStart: async (pgid) => {
          await options.onStart?.(pgid)
          await confirm()
        },
      }),
  }
}
