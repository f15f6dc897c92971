import { lstat, mkdir } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import type { IsolatedCopy } from '../executor.js'
import { unreadable } from '../exhaustion.js'
import { isInside } from '../workspace/paths.js'

/** An empty folder beside the copy. */
export const EMPTY = '.empty'

/** A copy that is being made for a sealed check. */
export interface SealedCopy {
  /** What it is a copy of. */
  readonly cwd: string
  /** Where it is now, and where it will be; both are folders in which it has this name. */
  readonly temporary: string
  readonly place: string
  readonly name: string
  /** Relative paths of its folders that are mounted from the original. */
  readonly readOnly: readonly string[]
  /** Those that are mounted into the original, which is a copy itself. */
  readonly mounted: IsolatedCopy['readOnly']
  /** Relative paths of what commands are not to see. */
  readonly without: readonly string[]
}

/**
 * What commands of a sealed check see in a copy, unchangeable, besides {@link SealedCopy.readOnly}:
 * what was mounted into the original, empty folders over parts of mounts that are to be left out,
 * and the repository. Makes the folders at which they are mounted.
 */
export async function sealedMounts(copy: SealedCopy): Promise<IsolatedCopy['readOnly']> {
  const { cwd, place, name, mounted, without } = copy
  const root = join(place, name)
  const made = async (path: string): Promise<string> => {
    await mkdir(join(copy.temporary, name, path), { recursive: true })
    return join(root, path)
  }
  const mounts: { from: string; to: string }[] = []
  for (const { from, to } of mounted) {
    if (isInside(to, cwd)) mounts.push({ from, to: await made(relative(cwd, to)) })
  }
  const own = copy.readOnly.map((path) => ({ from: join(cwd, path), to: join(root, path) }))
  const hidden = new Set<string>()
  for (const path of without) {
    const mount = [...own, ...mounts].find(({ to }) => isInside(join(root, path), to))
    if (mount === undefined) continue
    const part = relative(mount.to, join(root, path))
    const stats = await lstat(join(mount.from, part)).catch(unreadable)
    // Only folders can be mounted: a file is hidden with the folder that it is in.
    const folder = stats?.isDirectory() === true ? part : dirname(part)
    if (stats !== null) hidden.add(join(relative(root, mount.to), folder))
  }
  if (hidden.size > 0) await mkdir(join(copy.temporary, EMPTY))
  for (const path of hidden) mounts.push({ from: join(place, EMPTY), to: await made(path) })
  const repository = await lstat(join(copy.temporary, name, '.git')).catch(unreadable)
  const git = { from: join(root, '.git'), to: join(root, '.git') }
  return repository?.isDirectory() === true ? [...mounts, git] : mounts
}
