import { realpath } from 'node:fs/promises'
import { isAbsolute } from 'node:path'
import { isInside, realOrAsIs } from '../../workspace/paths.js'
import { exactPath, exactText } from '../../workspace/raw-paths.js'
import { walkFolder, WalkedFolder } from '../../workspace/walk-folder.js'
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
  const hidden = await Promise.all(closed.map(realOrAsIs))
  const isHidden = hidden.some((path) => isInside(real, path))
  const reached = roots.some((root) => isInside(real, root) || isInside(root, real))
  if (reached && !isHidden) {
    const why = 'it is in or above a folder that runs may work in'
    throw new TypeError(`holdout.folder: runs can read ${folder}, as ${why}`)
  }
  const files = readFiles(real)
  const sizes = files.map(([path, { length }]) => [path, length] as const)
  const problem = sizesProblem(sizes)
  if (problem !== null) throw invalid(problem)
  return new Map(files)
}

function readFiles(root: string): readonly (readonly [string, Uint8Array])[] {
  const files: [string, Uint8Array][] = []
  let [entries, left] = [0, MAX_BYTES]
  using top = WalkedFolder.open(exactPath(root))
  for (const found of walkFolder(top)) {
    const { folder, kind, name } = found
    if (kind === 'folder' && !SKIPPED.has(name)) found.enter()
    entries += kind === 'file' || kind === 'folder' ? 1 : 0
    if (entries > MAX_FILES) throw invalid(`must be at most ${MAX_FILES} files`)
    if (kind !== 'file') continue
    const path = exactText(found.path)
    const read = folder.read(name, left, (bytes) => new Uint8Array(bytes))
    if (read === 'unreadable') throw invalid(`${path} cannot be read`)
    if (read === 'large') throw invalid('must be at most 8 MiB in all')
    if (read === null) continue
    left -= read.content.length
    files.push([path, read.content])
  }
  return files.sort(([a], [b]) => (a < b ? -1 : 1))
}

function invalid(problem: string): TypeError {
  return new TypeError(`holdout.folder: ${problem}`)
}
