/**
 * What became of a tree: the net changes between two moments, whatever happened in between. What
 * grows with the trees is a generator, see `inSlices` in `internal/time.ts`.
 *
 * @module
 */
import type { Tree, TreeEntry } from '../tree.js'
import { outsideTree } from './left-out.js'
import { bytesOfName } from '../../internal/bytes.js'

/** What two files or links are compared by; an empty hash: the content is not known. */
interface Comparable {
  readonly kind: TreeEntry['kind']
  readonly mode: number
  readonly sha256: string
}

/** What became of one file or link. */
export interface Change<E> {
  readonly path: string
  /** The path before, of a renamed one; else null. */
  readonly oldPath: string | null
  readonly status: 'added' | 'modified' | 'deleted' | 'renamed'
  /** Null for an added one. */
  readonly before: E | null
  /** Null for a deleted one. */
  readonly after: E | null
}

/** The same in a tree. */
export type TreeChange = Change<TreeEntry>

/**
 * The changes between two trees, by path in the order of its bytes. A file that is gone and a new
 * one with the same content are one renamed file; of several, those whose paths end alike. What is
 * left out of one of both trees is no change.
 */
export function* netChanges(
  before: Tree,
  after: Tree,
): Generator<void, readonly TreeChange[]> {
  // Better a file too many that is new, than one that seems to be deleted.
  const isUnseen = { before: unseenIn(before, 'named'), after: unseenIn(after, 'all') }
  return yield* changesBetween(before.entries, after.entries, isUnseen)
}

/** The same for files by path. @param isUnseen which paths are not known before and after */
export function* changesBetween<E extends Comparable>(
  before: ReadonlyMap<string, E>,
  after: ReadonlyMap<string, E>,
  isUnseen: Readonly<Record<'before' | 'after', (path: string) => boolean>> = ALL_SEEN,
): Generator<void, readonly Change<E>[]> {
  const changes: Change<E>[] = []
  let looked = 0
  const gone = new Map<string, E>()
  const added = new Map<string, E>()
  for (const [path, old] of before) {
    if (++looked % PER_STEP === 0) yield
    const now = after.get(path)
    if (now === undefined) {
      if (!isUnseen.after(path)) gone.set(path, old)
    } else if (!isSameEntry(old, now)) {
      changes.push({ path, oldPath: null, status: 'modified', before: old, after: now })
    }
  }
  for (const [path, now] of after) {
    if (++looked % PER_STEP === 0) yield
    if (!before.has(path) && !isUnseen.before(path)) added.set(path, now)
  }
  for (const [path, oldPath] of yield* renames(gone, added)) {
    if (++looked % PER_STEP === 0) yield
    const [old, now] = [gone.get(oldPath)!, added.get(path)!]
    changes.push({ path, oldPath, status: 'renamed', before: old, after: now })
    gone.delete(oldPath)
    added.delete(path)
  }
  for (const [path, entry] of gone) {
    if (++looked % PER_STEP === 0) yield
    changes.push({ path, oldPath: null, status: 'deleted', before: entry, after: null })
  }
  for (const [path, entry] of added) {
    if (++looked % PER_STEP === 0) yield
    changes.push({ path, oldPath: null, status: 'added', before: null, after: entry })
  }
  return yield* sortInSteps(changes)
}

/** Entries that are looked at between two pauses. */
export const PER_STEP = 512

const ALL_SEEN = { before: () => false, after: () => false }

/** True for entries of the same kind, mode and content; null stands for none. */
export function isSameEntry(a: Comparable | null, b: Comparable | null): boolean {
  if (a === null || b === null) return a === b
  const isSameContent = a.sha256 !== '' && a.sha256 === b.sha256
  return isSameContent && a.mode === b.mode && a.kind === b.kind
}

/** The order of trees: by the bytes of the path. */
export function comparePaths(a: string, b: string): number {
  // The order of UTF-16 is the same but for what surrogates stand for.
  if (!SURROGATE.test(a) && !SURROGATE.test(b)) return a < b ? -1 : a > b ? 1 : 0
  return Buffer.compare(bytesOfName(a), bytesOfName(b))
}

/** Sorts in place. */
export function sortedByPath<T extends { readonly path: string }>(items: T[]): T[] {
  const isPlain = !items.some(({ path }) => SURROGATE.test(path))
  const compare = isPlain ? (a: T, b: T) => (a.path < b.path ? -1 : 1) : byBytes
  return items.sort(compare)
}

/** The same with pauses, for many: sorts parts, and joins them. */
export function* sortInSteps<T extends { readonly path: string }>(
  items: readonly T[],
): Generator<void, T[]> {
  let parts: T[][] = []
  for (let at = 0; at < items.length; at += PER_STEP) {
    parts.push(sortedByPath(items.slice(at, at + PER_STEP)))
    yield
  }
  while (parts.length > 1) {
    const joined: T[][] = []
    for (let i = 0; i < parts.length; i += 2) {
      joined.push(yield* join(parts[i]!, parts[i + 1] ?? []))
    }
    parts = joined
  }
  return parts[0] ?? []
}

function* join<T extends { readonly path: string }>(
  a: readonly T[],
  b: readonly T[],
): Generator<void, T[]> {
  const all: T[] = []
  for (let [i, j] = [0, 0]; i < a.length || j < b.length; ) {
    const isFirst = j === b.length || (i < a.length && comparePaths(a[i]!.path, b[j]!.path) <= 0)
    all.push(isFirst ? a[i++]! : b[j++]!)
    if (all.length % PER_STEP === 0) yield
  }
  return all
}

function byBytes(a: { readonly path: string }, b: { readonly path: string }): number {
  return comparePaths(a.path, b.path)
}

const SURROGATE = /[\ud800-\udfff]/

/**
 * Tells which paths a tree says nothing about. If not all that was left out is named, `all` takes
 * everything for left out that is no part of the tree.
 */
export function unseenIn(tree: Tree, which: 'named' | 'all'): (path: string) => boolean {
  if (which === 'all') return outsideTree(tree)
  const leftOut = tree.leftOut.map((it) => ({ ...it, count: it.paths.length }))
  return outsideTree({ ...tree, leftOut })
}

/** The folders that a path leads through, the outermost first. */
export function foldersAbove(path: string): readonly string[] {
  const folders: string[] = []
  for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) {
    folders.push(path.slice(0, at))
  }
  return folders
}

/** Which of the added paths had which of the gone ones. */
function* renames(
  gone: ReadonlyMap<string, Comparable>,
  added: ReadonlyMap<string, Comparable>,
): Generator<void, ReadonlyMap<string, string>> {
  const found = new Map<string, string>()
  const addedBy = yield* byContent(added)
  for (const [content, oldPaths] of yield* byContent(gone)) {
    const paths = addedBy.get(content) ?? []
    if (paths.length === 1 && oldPaths.length === 1) found.set(paths[0]!, oldPaths[0]!)
    else if (paths.length > 0) yield* pair(oldPaths, paths, found)
  }
  return found
}

function* byContent(
  entries: ReadonlyMap<string, Comparable>,
): Generator<void, Map<string, string[]>> {
  const paths = new Map<string, string[]>()
  let looked = 0
  for (const [path, { kind, sha256 }] of entries) {
    if (++looked % PER_STEP === 0) yield
    if (sha256 === '') continue
    const content = kind === 'file' ? sha256 : kind + sha256
    const same = paths.get(content)
    if (same === undefined) paths.set(content, [path])
    else same.push(path)
  }
  return paths
}

/** Names at the end of two paths that are compared, to find what was moved with its folder. */
const ENDS = [4, 3, 2, 1] as const

/** Pairs paths of equal content: those that end alike, that are in one folder, and then any. */
function* pair(
  oldPaths: readonly string[],
  paths: readonly string[],
  found: Map<string, string>,
): Generator<void, void> {
  let [free, left] = [oldPaths, paths]
  let looked = 0
  function* round(keyOf: (path: string) => string): Generator<void, void> {
    const byKey = new Map<string, string[]>()
    for (const path of free.toReversed()) {
      if (++looked % PER_STEP === 0) yield
      const key = keyOf(path)
      const same = byKey.get(key)
      if (same === undefined) byKey.set(key, [path])
      else same.push(path)
    }
    const taken = new Set<string>()
    const rest: string[] = []
    for (const path of left) {
      if (++looked % PER_STEP === 0) yield
      const oldPath = byKey.get(keyOf(path))?.pop()
      if (oldPath === undefined) {
        rest.push(path)
        continue
      }
      found.set(path, oldPath)
      taken.add(oldPath)
    }
    left = rest
    free = free.filter((path) => !taken.has(path))
  }
  for (const names of ENDS) yield* round((path) => endOf(path, names))
  yield* round((path) => path.slice(0, path.lastIndexOf('/') + 1))
  yield* round(() => '')
}

/** The last names of a path. */
function endOf(path: string, names: number): string {
  let at = path.length
  for (let i = 0; i < names && at >= 0; i++) at = path.lastIndexOf('/', at - 1)
  return path.slice(at + 1)
}
