import { constants } from 'node:fs'
import promises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import type { RunStore } from '../../lib/agent/store.js'

type AnyFunction = (this: unknown, ...args: unknown[]) => Promise<unknown>

/**
 * Kills this process at a write: an append to the log, before or after it, or a change of a file.
 *
 * @param folder any that exists
 * @returns `begin`, which starts to count from 1 and lets the process die at `killAt`; `count`
 */
export async function killAtWrite(
  store: RunStore,
  folder: string,
  killAt: number,
): Promise<{ readonly begin: () => void; readonly count: () => number }> {
  let writes = -Infinity
  const write = (): void => {
    writes += 1
    if (writes === killAt) process.kill(process.pid, 'SIGKILL')
  }
  const append = store.append.bind(store)
  store.append = async (...given) => {
    write()
    await append(...given)
    write()
  }
  const handle = await promises.open(folder)
  await handle.close()
  const targets: readonly [object, readonly string[]][] = [
    [promises, ['link', 'mkdir', 'open', 'rename', 'rmdir', 'symlink', 'unlink', 'writeFile']],
    [Object.getPrototypeOf(handle) as object, ['chmod', 'datasync', 'writeFile']],
  ]
  for (const [target, names] of targets) {
    for (const name of names) {
      const functions = target as Record<string, AnyFunction>
      const original = functions[name]!
      functions[name] = async function (...args) {
        const isChange = name !== 'open' || (Number(args[1]) & constants.O_CREAT) !== 0
        if (isChange) write()
        return await original.apply(this, args)
      }
    }
  }
  syncBuiltinESMExports()
  return { begin: () => (writes = 0), count: () => writes }
}
