/**
 * What must be done to a folder, path by path, so that it gets the content of a tree (restore) or
 * the changes between two trees (apply). Paths of which a tree says nothing are left alone.
 *
 * A restore also sets permissions. An apply changes only the executable bit of a file, as git does,
 * and creates new folders with default permissions.
 *
 * @module
 */
import { hash } from '../../internal/hash.js'
import { lowerBound } from '../../internal/queues.js'
import { inSlices, LongWork } from '../../internal/time.js'
import { CheckpointError } from '../errors.js'
import type { ContentOf, Tree, TreeEntry } from '../tree.js'
import { MAX_COMPARED_BYTES } from './diff.js'
import { mergeTexts } from './merge-text.js'
import {
  comparePaths, foldersAbove, isSameEntry, PER_STEP, sortInSteps, unseenIn,
} from './net-changes.js'
import { folderSteps, onlyFolders, type FolderPlan, type FolderStep } from './tree-folders.js'

/** One path that changes; null stands for no file. */
export interface PathStep {
  readonly path: string
  /** What is found there, or else nothing is done. */
  readonly before: TreeEntry | null
  readonly after: TreeEntry | null
}

/** Bytes of all merged contents of one apply; what is beyond counts as a conflict. */
const MAX_MERGED_BYTES = 64 * 1024 * 1024

/**
 * The steps from one tree to another, by path. A step whose `after` is not stored can only be done
 * if `before` has the same content.
 */
export function* planRestore(
  current: Tree,
  target: Tree,
): Generator<void, readonly PathStep[]> {
  const steps: PathStep[] = []
  let looked = 0
  const isUnseenNow = unseenIn(current, 'named')
  const isUnseenThen = unseenIn(target, 'all')
  for (const [path, before] of current.entries) {
    if (++looked % PER_STEP === 0) yield
    const after = target.entries.get(path) ?? null
    if (isSameEntry(before, after) || (after === null && isUnseenThen(path))) continue
    steps.push({ path, before, after })
  }
  for (const [path, after] of target.entries) {
    if (++looked % PER_STEP === 0) yield
    if (current.entries.has(path) || isUnseenNow(path)) continue
    steps.push({ path, before: null, after })
  }
  return yield* sortInSteps(steps)
}

/** The trees of an apply: where the run began, what it made of that, and the folder now. */
export interface ApplyTrees {
  readonly base: Tree
  readonly ours: Tree
  readonly theirs: Tree
}

/** What an apply does. */
export interface ApplyPlan {
  readonly steps: readonly PathStep[]
  /** Paths of steps in which the lines of both sides were merged. */
  readonly merged: readonly string[]
  /** The merged contents, by their hash: no object store has them. */
  readonly contents: ReadonlyMap<string, Uint8Array>
  readonly folders: FolderPlan
  /**
   * Paths that both sides changed, that are in each other's way, or whose content is not stored.
   * With `force` there are steps for them that take ours, if that is possible.
   */
  readonly conflicts: readonly string[]
}

/**
 * Plans to bring the changes from `base` to `ours` into `theirs`: a pure function of its arguments,
 * so that the same plan can be made again.
 *
 * @param paths the changed paths that count; null for all
 * @param force where both sides changed a path, ours is taken, and what is in its way removed
 */
export async function planApply(
  { base, ours, theirs }: ApplyTrees,
  contentOf: ContentOf,
  options: { readonly paths?: readonly string[] | null; readonly force?: boolean } = {},
): Promise<ApplyPlan> {
  const { paths = null, force = false } = options
  const wanted = paths === null ? null : new Set(paths)
  const plan = new Planner(theirs, contentOf, force)
  const work = new LongWork()
  for (const { path, before, after } of await inSlices(planRestore(base, ours))) {
    if (work.isDue) await work.next()
    if (wanted === null || wanted.has(path)) await plan.add(path, before, after)
  }
  const steps = await inSlices(folderSteps(base, ours))
  const made = steps.filter(({ before, after }) => before === null && after !== null)
  const folders = { steps: made, kept: ours.folders ?? new Map(), known: null }
  return await inSlices(plan.finish(onlyFolders(folders, paths)))
}

/**
 * The base of an apply of a fork that took over changes of its source: where these began. But what
 * the folder has as the fork found it, because the source was applied meanwhile, is no change.
 *
 * @param began the tree with which the changes of the source began
 * @param start the tree with which the fork began
 * @param theirs the folder now
 */
export function* baseOfTakenOver(began: Tree, start: Tree, theirs: Tree): Generator<void, Tree> {
  const entries = new Map<string, TreeEntry>(began.entries)
  const isUnseen = unseenIn(start, 'all')
  let looked = 0
  for (const [path, entry] of start.entries) {
    if (++looked % PER_STEP === 0) yield
    if (isSameEntry(theirs.entries.get(path) ?? null, entry)) entries.set(path, entry)
  }
  for (const path of began.entries.keys()) {
    if (++looked % PER_STEP === 0) yield
    const isGone = !theirs.entries.has(path) && !start.entries.has(path) && !isUnseen(path)
    if (isGone) entries.delete(path)
  }
  return { ...began, entries }
}

class Planner {
  readonly #theirs: Tree
  readonly #contentOf: ContentOf
  readonly #force: boolean
  readonly #isUnseen: (path: string) => boolean
  readonly #steps: Map<string, PathStep> = new Map()
  readonly #merged: string[] = []
  readonly #contents: Map<string, Uint8Array> = new Map()
  readonly #conflicts: Set<string> = new Set()
  #bytesLeft = MAX_MERGED_BYTES

  constructor(theirs: Tree, contentOf: ContentOf, force: boolean) {
    this.#theirs = theirs
    this.#contentOf = contentOf
    this.#force = force
    this.#isUnseen = unseenIn(theirs, 'named')
  }

  /** Plans what we changed from `base` to `ours`. */
  async add(path: string, before: TreeEntry | null, after: TreeEntry | null): Promise<void> {
    const theirs = this.#theirs.entries.get(path) ?? null
    const [base, ours] = [withModeOf(theirs, before), withModeOf(theirs, after)]
    if (isSameEntry(ours, theirs) || isSameEntry(base, ours)) return
    const isMissing = ours?.stored === false && ours.sha256 !== theirs?.sha256
    if (isMissing || (theirs === null && this.#isUnseen(path))) {
      this.#conflicts.add(path)
      return
    }
    const both = isSameEntry(base, theirs) ? ours : await this.#merge(path, base, ours, theirs)
    if (both === undefined) this.#conflicts.add(path)
    if (both === undefined && !this.#force) return
    this.#steps.set(path, { path, before: theirs, after: both === undefined ? ours : both })
  }

  /** What both sides made of a file; undefined for a conflict. */
  async #merge(
    path: string,
    base: TreeEntry | null,
    ours: TreeEntry | null,
    theirs: TreeEntry | null,
  ): Promise<TreeEntry | undefined> {
    const all = [base, ours, theirs]
    if (base === null || ours === null || theirs === null) return undefined
    if (all.some((entry) => entry!.kind !== 'file')) return undefined
    const mode = oneSided(base.mode, ours.mode, theirs.mode)
    if (mode === undefined) return undefined
    const sha256 = oneSided(base.sha256, ours.sha256, theirs.sha256)
    if (sha256 !== undefined) return { ...(sha256 === ours.sha256 ? ours : theirs), mode }
    const content = await this.#mergeContents([base, ours, theirs])
    if (content === null) return undefined
    const size = content.length
    const merged = { kind: 'file', mode, sha256: hash('sha256', content), size } as const
    // Both may have made the same in other ways.
    if (isSameEntry(merged, theirs)) return theirs
    this.#contents.set(merged.sha256, content)
    this.#merged.push(path)
    return merged
  }

  async #mergeContents(entries: readonly TreeEntry[]): Promise<Uint8Array | null> {
    const bytes = entries.reduce((sum, { size }) => sum + size, 0)
    const isUsable = ({ size, stored }: TreeEntry): boolean =>
      stored !== false && size <= MAX_COMPARED_BYTES
    if (!entries.every(isUsable) || bytes > this.#bytesLeft) return null
    this.#bytesLeft -= bytes
    try {
      const [base, ours, theirs] = await Promise.all(entries.map((it) => this.#contentOf(it)))
      return await inSlices(mergeTexts(base!, ours!, theirs!))
    } catch (error) {
      if (error instanceof CheckpointError && error.problem === 'not_kept') return null
      throw error
    }
  }

  /** @param folders the new folders on our side */
  *finish(folders: FolderPlan): Generator<void, ApplyPlan> {
    yield* this.#makeRoom()
    const made = folders.steps.filter((step) => this.#isMade(step))
    const steps = [...this.#steps.values()].filter(
      ({ before, after }) => !isSameEntry(before, after),
    )
    return {
      steps: yield* sortInSteps(steps),
      merged: this.#merged.filter((path) => this.#steps.has(path)),
      contents: this.#contents,
      folders: { ...folders, steps: made },
      conflicts: [...this.#conflicts].sort(comparePaths),
    }
  }

  /** Can an empty folder be created? No file is removed for it. */
  #isMade({ path }: FolderStep): boolean {
    if (this.#theirs.folders?.has(path) === true || this.#isUnseen(path)) return false
    return [...foldersAbove(path), path].every((at) => {
      const after = this.#steps.get(at)?.after
      return after === undefined ? !this.#theirs.entries.has(at) : after === null
    })
  }

  /** New files need folders where they have files, and the other way round. */
  *#makeRoom(): Generator<void, void> {
    const isNew = ({ before, after }: PathStep): boolean => before === null && after !== null
    const added = [...this.#steps.values()].filter(isNew)
    if (added.length === 0) return
    const paths = [...this.#theirs.entries.keys()]
    const leftOut = new Set(this.#theirs.leftOut.flatMap((it) => it.paths.flatMap(foldersAbove)))
    for (const [i, { path }] of added.entries()) {
      if (i % PER_STEP === 0) yield
      const inTheWay = [...foldersAbove(path), ...pathsBelow(path, paths)].filter((other) => {
        const theirs = this.#theirs.entries.get(other)
        return theirs !== undefined && this.#steps.get(other)?.after !== null
      })
      const isBlocked = leftOut.has(path)
      if (inTheWay.length === 0 && !isBlocked) continue
      this.#conflicts.add(path)
      // Files without an entry are looked for before a forced step is done.
      if (!this.#force) this.#steps.delete(path)
      else for (const other of inTheWay) this.#remove(other)
    }
  }

  #remove(path: string): void {
    this.#conflicts.add(path)
    this.#steps.set(path, { path, before: this.#theirs.entries.get(path)!, after: null })
  }
}

/** An entry with the permissions that it gets when it replaces `theirs`; null: a new file. */
function withModeOf(theirs: TreeEntry | null, entry: TreeEntry | null): TreeEntry | null {
  if (entry?.kind !== 'file') return entry
  const isProgram = (entry.mode & 0o100) !== 0
  const mode = theirs?.kind === 'file' ? theirs.mode : 0o644
  if (isProgram === ((mode & 0o100) !== 0)) return { ...entry, mode }
  // Everyone who may read it may run it.
  return { ...entry, mode: isProgram ? mode | 0o100 | ((mode & 0o444) >> 2) : mode & 0o666 }
}

/** What one side changed, or both alike; undefined when each changed it in its own way. */
function oneSided<T>(base: T, ours: T, theirs: T): T | undefined {
  if (ours === theirs || theirs === base) return ours
  return ours === base ? theirs : undefined
}

/** Those of sorted paths that lie below a path. */
function pathsBelow(path: string, sorted: readonly string[]): readonly string[] {
  const prefix = `${path}/`
  const start = lowerBound(sorted.length, (at) => comparePaths(sorted[at]!, prefix) < 0)
  let end = start
  while (end < sorted.length && sorted[end]!.startsWith(prefix)) end += 1
  return sorted.slice(start, end)
}
