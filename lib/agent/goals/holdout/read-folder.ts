import { constants } from 'node:fs'
import { open, readdir, realpath } from 'node:fs/promises'
import { isAbsolute, join, relative, sep } from 'node:path'
import { isInside } from '../../workspace/paths.js'
import { MAX_BYTES, MAX_FILES, sizesProblem } from './held-out-tests.js'

const SKIPPED: ReadonlySet<string> = new Set(['.git', 'node_modules'])

/**
 * The files of a folder with held-out tests, by path in it; without `.git`, `node_modules` and
 * links.
 *
 * @param roots folders that runs may work in, by real path
 * @param closed folders that are hidden from them
 * @throws TypeError that says what is wrong with the folder.
 */
export async function readHoldoutFolder(
  folder: string,
  roots: readonly string[],
  closed: readonly string[],
): Promise<ReadonlyMap<string, Uint8Array>> {
  if (!isAbsolute(folder)) throw new TypeError('holdout.folder must be an absolute path')
  const real = await realpath(folder).catch((cause: unknown) => {
    throw new TypeError(`holdout.folder: ${folder} cannot be read`, { cause })
  })
  const hidden = await Promise.all(closed.map((path) => realpath(path).catch(() => path)))
  const isHidden = hidden.some((path) => isInside(real, path))
  const reached = roots.some((root) => isInside(real, root) || isInside(root, real))
  if (reached && !isHidden) {
    const why = 'it is in or above a folder that runs may work in'
    throw new TypeError(`holdout.folder: runs can read ${folder}, as ${why}`)
  }
  const paths = await filesIn(real)
  const files = new Map<string, Uint8Array>()
  let left = MAX_BYTES
  for (const path of paths) {
    const content = await readAtMost(path, left + 1)
    left -= content.length
    if (left < 0) break
    files.set(relative(real, path).replaceAll(sep, '/'), content)
  }
  const sizes = [...files].map(([path, { length }]) => [path, length] as const)
  const problem = left < 0 ? 'must be at most 8 MiB in all' : sizesProblem(sizes)
  if (problem !== null) throw new TypeError(`holdout.folder: ${problem}`)
  return files
}

async function filesIn(root: string): Promise<readonly string[]> {
  const files: string[] = []
  const folders = [root]
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name)
      if (entry.isDirectory() && !SKIPPED.has(entry.name)) folders.push(path)
      if (entry.isFile()) files.push(path)
    }
    if (files.length + folders.length > MAX_FILES)
      throw new TypeError(`holdout.folder: must be at most ${MAX_FILES} files`)
  }
  return files.sort()
}

async function readAtMost(path: string, bytes: number): Promise<Buffer> {
  await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW)
  const { size } = await file.stat()
  const content = Buffer.alloc(Math.min(size, bytes))
  let at = 0
  while (at < content.length) {
    const { bytesRead } = await file.read(content, at, content.length - at, at)
    if (bytesRead === 0) break
    at += bytesRead
  }
  return content.subarray(0, at)
}
