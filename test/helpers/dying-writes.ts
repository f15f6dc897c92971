/**
 * For children that kill themselves at a write: an append to a log, before or after it, or a change
 * of a file. Bundled: only relative imports work here.
 */
import { constants } from 'node:fs'
import promises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import type { RunStore } from '../../lib/agent/store.js'

type AnyFunction = (this: unknown, ...args: unknown[]) => Promise<unknown>

/** Counts writes from {@link DyingWrites.begin} on, and dies at the one with number `killAt`. */
export class DyingWrites {
  readonly #killAt: number
  #writes = -Infinity

  private constructor(killAt: number) {
    this.#killAt = killAt
  }

  static async of(store: RunStore, folder: string, killAt: number): Promise<DyingWrites> {
    const writes = new DyingWrites(killAt)
    const append = store.append.bind(store)
    store.append = async (...given) => {
      writes.#count()
      await append(...given)
      writes.#count()
    }
    const handle = await promises.open(folder)
    await handle.close()
    writes.#countCalls(promises, [
      'link', 'mkdir', 'open', 'rename', 'rm', 'rmdir', 'symlink', 'unlink',
    ])
    writes.#countCalls(Object.getPrototypeOf(handle) as object, ['chmod', 'datasync', 'writeFile'])
    syncBuiltinESMExports()
    return writes
  }

  begin(): void {
    this.#writes = 0
  }

  #count(): void {
    this.#writes += 1
    if (this.#writes === this.#killAt) process.kill(process.pid, 'SIGKILL')
  }

  #countCalls(target: object, names: readonly string[]): void {
    const functions = target as Record<string, AnyFunction>
    const count = (): void => this.#count()
    for (const name of names) {
      const original = functions[name]!
      functions[name] = async function (...args) {
        const isChange = name !== 'open' || (Number(args[1]) & constants.O_CREAT) !== 0
        if (isChange) count()
        return await original.apply(this, args)
      }
    }
  }
}
