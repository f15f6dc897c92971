/**
 * Which files a sealed copy must have as at the start: those that nobody claims and the run has
 * changed. Before they are put back, programs are asked that no check has read: whoever generates a
 * file, or has a script in package.json that does, claims it.
 *
 * @module
 */
import { posix } from 'node:path'

import { LongWork } from '../../../internal/next-turn.js'
import type { FilesAtStart } from '../../check-files.js'
import type { GoalBaseline } from '../../goal.js'
import { hashFiles } from '../protected-files.js'
import {
  isInTestTree, isNeverOfChecks, isTestName, languageOf, stemOf,
} from './file-kinds.js'
import { listFiles } from './list-files.js'
import { TextReader } from './read-texts.js'

/** Programs are asked of so many files; further ones are put back in any case. */
const MAX_ASKED = 20

/**
 * The files of `unclaimed` that are to be restored in a folder.
 *
 * @throws {@link GoalError} when the folder is too large; the signal's reason.
 */
export async function toRestore(
  root: string,
  unclaimed: readonly string[],
  baseline: GoalBaseline,
  atStart: FilesAtStart,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const differing: string[] = []
  for (const [path, hash] of await atStart.stored(unclaimed)) {
    // One by one: together they may be more than is hashed at once.
    if ((await hashFiles(root, [path]))[path] !== hash) differing.push(path)
  }
  if (differing.length === 0) return []
  // A new program could name them to claim them.
  const isCode = async (path: string): Promise<boolean> =>
    !Object.hasOwn(baseline.files, path) && (await atStart.hashOf(path)) !== null
  const claimed = await claimedByPrograms(root, differing.slice(0, MAX_ASKED), isCode, signal)
  return differing.filter((path) => !claimed.has(path))
}

/** Those that a program names, or whose folder it names. */
async function claimedByPrograms(
  root: string,
  paths: readonly string[],
  isCode: (path: string) => Promise<boolean>,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const claimed = new Set<string>()
  const left = new Map(paths.map((path) => [path, namesOf(path)]))
  const texts = new TextReader(root)
  const work = new LongWork()
  for (const { path, kind } of await listFiles(root, signal)) {
    if (kind !== 'file' || left.size === 0) continue
    const isManifest = posix.basename(path) === 'package.json'
    if (!isManifest && (!mayBeCode(path) || left.has(path) || !(await isCode(path)))) continue
    if (work.isDue) await work.next()
    const text = await texts.read(path)
    if (text === null) continue
    for (const [file, { own, folder }] of left) {
      const isNamed = own.some((name) => text.includes(name))
      if (!isNamed && (isManifest || !folder.some((name) => text.includes(name)))) continue
      claimed.add(file)
      left.delete(file)
    }
  }
  return claimed
}

function mayBeCode(path: string): boolean {
  if (isTestName(path) || isInTestTree(path) || isNeverOfChecks(path)) return false
  return languageOf(path) !== 'data'
}

interface Names {
  readonly own: readonly string[]
  /** Of data, which programs also write by a name that they put together. */
  readonly folder: readonly string[]
}

function namesOf(path: string): Names {
  const own = [posix.basename(path)]
  if (languageOf(path) !== 'data') {
    return { own: [...own, `/${stemOf(path)}'`, `/${stemOf(path)}"`], folder: [] }
  }
  const folder = posix.basename(posix.dirname(path))
  return { own, folder: folder === '.' ? [] : [`'${folder}'`, `"${folder}"`, `${folder}/`] }
}
