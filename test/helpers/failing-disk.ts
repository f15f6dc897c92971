/**
 * Kills at every write: the functions of `node:fs/promises` that change something fail from a given
 * call on, as they would for a process that is no more. The last call may write half of a content.
 */
import promises from 'node:fs/promises'
import { constants } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'

/** Thrown by everything that would change something after the kill. */
export class KilledError extends Error {}

const PATHS = ['chmod', 'link', 'mkdir', 'rename', 'rmdir', 'symlink', 'unlink'] as const
const HANDLES = ['chmod', 'datasync', 'sync', 'truncate', 'write'] as const

type AnyFunction = (this: unknown, ...args: unknown[]) => Promise<unknown>
type Functions = Record<string, AnyFunction>

/**
 * Does work that is killed at the change with number `at`, from 1. Returns how many changes were
 * begun; fewer than `at` when it ended before.
 */
export async function killedAt(
  at: number,
  work: () => Promise<unknown>,
  onChange: (name: string) => void = () => undefined,
): Promise<number> {
  let begun = 0
  const handle = await promises.open(tmpdir())
  await handle.close()
  const targets: readonly [Functions, readonly string[]][] = [
    [promises as unknown as Functions, [...PATHS, 'open']],
    [Object.getPrototypeOf(handle) as Functions, HANDLES],
  ]
  const originals = targets.map(([target, names]) => names.map((name) => target[name]!))
  targets.forEach(([target, names], i) =>
    names.forEach((name, j) => {
      const original = originals[i]![j]!
      target[name] = async function (...args) {
        const isChange = name !== 'open' || (Number(args[1]) & constants.O_CREAT) !== 0
        if (!isChange) return await original.apply(this, args)
        begun += 1
        onChange(name)
        if (begun === at && name === 'write') {
          const [content, from, length, to] = args as [Uint8Array, number, number, number]
          await original.call(this, content, from, Math.floor(length / 2), to)
        }
        if (begun >= at) throw new KilledError(`killed at change ${begun}: ${name}`)
        return await original.apply(this, args)
      }
    }),
  )
  syncBuiltinESMExports()
  try {
    await work()
  } catch (error) {
    const { cause } = error as Error
    if (!(error instanceof KilledError || cause instanceof KilledError)) throw error
  } finally {
    targets.forEach(([target, names], i) =>
      names.forEach((name, j) => (target[name] = originals[i]![j]!)),
    )
    syncBuiltinESMExports()
  }
  return begun
}
