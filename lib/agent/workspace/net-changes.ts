/**
 * What became of a tree: the net changes between two moments, whatever happened in between.
 *
 * @module
 */
import type { Tree, TreeEntry } from '../tree.js'
import { outsideTree } from './left-out.js'
import { bytesOfName } from './tree-names.js'

/** What became of one file or link. */
export interface TreeChange {
  readonly path: string
  /** The path before, of a renamed one; else null. */
  readonly oldPath: string | null
  readonly status: 'added' | 'modified' | 'deleted' | 'renamed'
  /** Null for an added one. */
  readonly before: TreeEntry | null
  /** Null for a deleted one. */
  readonly after: TreeEntry | null
}

/**
 * The changes between two trees, by path in the order of its bytes. A file that is gone and a new
 * one with the same content are one renamed file; of several, those whose paths end alike. What is
 * left out of one of both trees is no change.
 */
export function netChanges(before: Tree, after: Tree): readonly TreeChange[] {
  const changes: TreeChange[] = []
  const gone = new Map<string, TreeEntry>()
  // Better a file too many that is new, than one that seems to be deleted.
  const isUnseenBefore = unseenIn(before, 'named')
  const isUnseenAfter = unseenIn(after, 'all')
  for (const [path, old] of before.entries) {
    const now = after.entries.get(path)
    if (now === undefined) {
      if (!isUnseenAfter(path)) gone.set(path, old)
    } else if (!isSameEntry(old, now)) {
      changes.push({ path, oldPath: null, status: 'modified', before: old, after: now })
    }
  }
  const added = new Map<string, TreeEntry>()
  for (const [path, now] of after.entries) {
    if (!before.entries.has(path) && !isUnseenBefore(path)) added.set(path, now)
  }
  for (const [path, oldPath] of renames(gone, added)) {
    const [old, now] = [gone.get(oldPath)!, added.get(path)!]
    changes.push({ path, oldPath, status: 'renamed', before: old, after: now })
    gone.delete(oldPath)
    added.delete(path)
  }
  for (const [path, entry] of gone) {
    changes.push({ path, oldPath: null, status: 'deleted', before: entry, after: null })
  }
  for (const [path, entry] of added) {
    changes.push({ path, oldPath: null, status: 'added', before: null, after: entry })
  }
  return changes.sort((a, b) => comparePaths(a.path, b.path))
}

/** True for entries of the same kind, mode and content; null stands for none. */
export function isSameEntry(a: TreeEntry | null, b: TreeEntry | null): boolean {
  if (a === null || b === null) return a === b
  return a.sha256 === b.sha256 && a.mode === b.mode && a.kind === b.kind
}

/** The order of trees: by the bytes of the path. */
export function comparePaths(a: string, b: string): number {
  // The order of UTF-16 is the same but for what surrogates stand for.
  if (!SURROGATE.test(a) && !SURROGATE.test(b)) return a < b ? -1 : a > b ? 1 : 0
  return Buffer.compare(bytesOfName(a), bytesOfName(b))
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

/** Names at the end of two paths that are compared, to find what was moved with its folder. */
const ENDS = [5, 4, 3, 2, 1] as const

/** Which of the added paths had which of the gone ones. Each round is linear. */
function renames(
  gone: ReadonlyMap<string, TreeEntry>,
  added: ReadonlyMap<string, TreeEntry>,
): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  const taken = new Set<string>()
  const round = (keyOf: (path: string) => string): void => {
    if (found.size === added.size || taken.size === gone.size) return
    const free = new Map<string, string[]>()
    for (const [path, { kind, sha256 }] of gone) {
      if (taken.has(path)) continue
      const key = `${kind} ${sha256} ${keyOf(path)}`
      const paths = free.get(key)
      if (paths === undefined) free.set(key, [path])
      else paths.push(path)
    }
    for (const paths of free.values()) paths.reverse()
    for (const [path, { kind, sha256 }] of added) {
      if (found.has(path)) continue
      const oldPath = free.get(`${kind} ${sha256} ${keyOf(path)}`)?.pop()
      if (oldPath === undefined) continue
      found.set(path, oldPath)
      taken.add(oldPath)
    }
  }
  for (const names of ENDS) round((path) => path.split('/').slice(-names).join('/'))
  round((path) => path.slice(0, path.lastIndexOf('/') + 1))
  round(() => '')
  return found
}
