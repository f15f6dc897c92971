/**
 * Which files a sealed copy must have as at the start, if the run has changed them:
 *
 * 1. Data that belongs to the check since tests alone read it. Nobody can claim it: what generates
 *    it may do so from the code under test, and would say what that is compared with.
 * 2. What nobody claims. Before it is put back, programs are asked that no check has read: whoever
 *    generates a file, or has a script in package.json that does, claims it.
 *
 * @module
 */
import { posix } from 'node:path'

import { LongWork } from '../../../internal/time.js'
import type { FilesAtStart, StoredSeal } from '../../check-files.js'
import type { GoalBaseline, GoalCheckContext } from '../../goal.js'
import { hashFiles } from '../protected-files.js'
import { splitPart } from '../relevant-part.js'
import {
  isForTests, isInTestTree, isNeverOfChecks, isTestName, languageOf, stemOf,
} from './file-kinds.js'
import { listFiles } from './list-files.js'
import { TextReader } from './read-texts.js'
import { existingIn } from './file-states.js'

/** Programs are asked of so many files; further ones are put back in any case. */
const MAX_ASKED = 20

/**
 * Data of the check that sealed checks have as at the start: a change in place is no offence then.
 */
export async function restorableData(
  { reasons }: StoredSeal,
  { files }: GoalBaseline,
  atStart: FilesAtStart,
): Promise<ReadonlySet<string>> {
  const data = Object.keys(reasons).filter(
    (path) =>
      reasons[path] === 'read by tests only' && languageOf(path) === 'data' &&
      splitPart(path) === null,
  )
  const stored = [...(await atStart.stored(data))]
  return new Set(stored.flatMap(([path, hash]) => (files[path] === hash ? [path] : [])))
}

/** A copy of which files can be replaced. */
interface Copy {
  readonly root: string
  putAside(paths: readonly string[]): Promise<void>
  /** In ms. */
  setTimes(times: Readonly<Record<string, number>>): Promise<void>
}

/**
 * Restores data of the check, and what nobody claims, in a copy.
 *
 * @returns what differed, and what of it could not be restored
 * @throws {@link GoalError} when the folder is too large; the signal's reason.
 */
export async function restoreFiles(
  copy: Copy,
  seal: StoredSeal,
  { baseline, signal }: GoalCheckContext,
  atStart: FilesAtStart,
): Promise<{ readonly restored: readonly string[]; readonly lost: readonly string[] }> {
  const { root } = copy
  const { unclaimed = [], times = {} } = seal.start ?? {}
  const data = await differing(root, [...(await restorableData(seal, baseline, atStart))], atStart)
  const changed = await differing(root, unclaimed, atStart)
  // A new program could name them to claim them.
  const isCode = async (path: string): Promise<boolean> =>
    !Object.hasOwn(baseline.files, path) && (await atStart.hashOf(path)) !== null
  const claimed = await claimedByPrograms(root, changed.slice(0, MAX_ASKED), isCode, signal)
  const restored = [...data, ...changed.filter((path) => !claimed.has(path))]
  await copy.putAside(await existingIn(root, restored))
  const done = new Set(await atStart.restore(root, restored))
  // The time of a file may say as much as its content, as that of a note of the last success.
  const asAtStart = Object.entries(times).filter(([path]) => !claimed.has(path))
  await copy.setTimes(Object.fromEntries(asAtStart))
  return { restored, lost: restored.filter((path) => !done.has(path)) }
}

/** Those of `paths` that are not as at the start, of those that are stored. */
async function differing(
  root: string,
  paths: readonly string[],
  atStart: FilesAtStart,
): Promise<readonly string[]> {
  const found: string[] = []
  for (const [path, hash] of await atStart.stored(paths)) {
    // One by one: together they may be more than is hashed at once.
    if ((await hashFiles(root, [path]))[path] !== hash) found.push(path)
  }
  return found
}

/** Those that a program names, or whose folder it names. */
async function claimedByPrograms(
  root: string,
  paths: readonly string[],
  isCode: (path: string) => Promise<boolean>,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const claimed = new Set<string>()
  if (paths.length === 0) return claimed
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
  // Code is told the name of data for tests by those who use it.
  const hasPendingMessages = folder === '.' || isForTests(path)
  return { own, folder: hasPendingMessages ? [] : [`'${folder}'`, `"${folder}"`, `${folder}/`] }
}
