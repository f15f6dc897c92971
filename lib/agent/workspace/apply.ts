/**
 * Changes a folder path by path, as a whole or not at all.
 *
 * 1. A path that has what it shall have is done. One that is neither that nor what was expected was
 *    changed by another program, and is left alone.
 * 2. Phase one writes every new content to a temporary file in the folder of its path, or in the
 *    deepest one above that exists. Nothing else is changed: a fault here leaves all as it was.
 * 3. Phase two only renames. What is replaced has a second name since phase one, and what goes gets
 *    one now, so each path has the old or the new content and never a part. The order is: what
 *    goes, empty folders in the place of a file, what comes, folders that hold no files.
 * 4. A fault in phase two undoes it, path by path, and a path that cannot be undone does not keep
 *    the others from that. Once everything is on the disk, second names and empty folders are
 *    removed, and the permissions of folders are set: a call that fails there must be repeated.
 * 5. The names of temporary files follow from a key. A call with the key of one that was killed, or
 *    could not undo everything, goes on in whatever state that one has left the folder.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import type { Stats } from 'node:fs'
import fs, { lstat, readdir, rename, unlink } from 'node:fs/promises'
import { bytesOfName } from '../../internal/bytes.js'
import { hash } from '../../internal/hash.js'
import { lacksRoom } from '../exhaustion.js'
import type { ContentOf } from '../tree.js'
import { FolderChain, inLanes } from './folder-chain.js'
import { comparePaths, foldersAbove, isSameEntry, sortedByPath } from './net-changes.js'
import { codeOf, confine, statOrNull, type Confinement } from './paths.js'
import {
  below, isSameFile, isStill, linkTo, look, moveInto, placeOf, removeFolder, removeFolders,
  removeOwn, renameCase, setMode, unlessOvertaken, withoutCase, writeNew, type At,
} from './places.js'
import type { PathStep } from './plan-steps.js'
import { NO_FOLDERS, type FolderPlan } from './tree-folders.js'

export {
  baseOfTakenOver, planApply, planRestore, type ApplyPlan, type PathStep,
} from './plan-steps.js'

/** What became of the steps, by path. */
export interface AppliedSteps {
  readonly done: readonly string[]
  /** Left alone: see rule 1, and closed folders and what belongs to git. */
  readonly skipped: readonly string[]
}

export interface ApplyOptions {
  readonly closed?: readonly string[] | undefined
  /** @defaultValue {@link NO_FOLDERS} */
  readonly folders?: FolderPlan | undefined
  /** See rule 5. @defaultValue a random one */
  readonly key?: string | undefined
  /** Does an earlier call with the key exist that did not come to its end? @defaultValue false */
  readonly again?: boolean | undefined
  /** Stops the work where it is, without undoing anything: another process goes on with it. */
  readonly signal?: AbortSignal | undefined
}

/** Thrown when some steps are done, or temporary files are left, and that cannot be undone. */
export class HalfAppliedError extends Error {}

/** Thrown when a disk is full; nothing was changed. */
export class NoRoomError extends Error {
  readonly missingBytes: number

  constructor(message: string, missingBytes: number, options: ErrorOptions) {
    super(message, options)
    this.missingBytes = missingBytes
  }
}

/**
 * Does the steps, or nothing.
 *
 * @param folder a path to it, such as `/proc/self/fd/N`
 * @throws {@link HalfAppliedError}; else nothing was changed: {@link NoRoomError};
 * {@link WorkspaceError} when the system refuses a step; what `contentOf` throws. The signal's
 * reason, whatever was changed by then.
 */
export async function applySteps(
  folder: string,
  steps: readonly PathStep[],
  contentOf: ContentOf,
  options: ApplyOptions = {},
): Promise<AppliedSteps> {
  const confining = confine(folder, undefined, options.closed ?? [], folder)
  const confinement = await confining.catch((error: unknown) => {
    throw options.again === true ? half(error) : error
  })
  return await new FolderChange(confinement, folder, steps, contentOf, options).run()
}

/** Finds what the steps do not name in folders that would have to make room for files. */
export async function findInTheWay(
  folder: string,
  steps: readonly PathStep[],
  closed: readonly string[],
): Promise<readonly string[]> {
  const confinement = await confine(folder, undefined, closed, folder)
  const contentOf = (): Promise<never> => Promise.reject(new TypeError('nothing is written'))
  return await new FolderChange(confinement, folder, steps, contentOf, {}).findInTheWay()
}

function half(error: unknown): HalfAppliedError {
  return new HalfAppliedError((error as Error).message, { cause: error })
}

/** Work for one step; resolves with false when the step is skipped. */
type StepWork = (folders: FolderChain, step: PathStep) => Promise<boolean>

/** See the comment of this file. */
class FolderChange {
  readonly #confinement: Confinement
  readonly #folder: string
  readonly #contentOf: ContentOf
  readonly #key: string
  readonly #again: boolean
  readonly #signal: AbortSignal | undefined
  readonly #steps: readonly PathStep[]
  readonly #folders: FolderPlan
  /** Steps that leave nothing at their path, the others, and those of them that add a path. */
  readonly #going: readonly PathStep[]
  readonly #coming: readonly PathStep[]
  readonly #added: ReadonlySet<string>
  readonly #skipped: Set<string> = new Set()
  /** Stats of the entries that are about to change, by path; null where there is none. */
  readonly #found: Map<string, Stats | null> = new Map()
  /** Inodes of what goes: where case is ignored, it is found by the name of what comes as well. */
  readonly #inodes: Set<number> = new Set()
  /** How deep the folders are that hold the temporary files. */
  readonly #depths: Map<string, number> = new Map()
  /** Paths of folders that have to make room for a file. */
  readonly #inTheWay: Set<string> = new Set()
  /** Folders that were made. */
  readonly #made: Set<string> = new Set()
  /** True once a path was seen that is not as wanted yet: all second names are there then. */
  #isUnplaced = false
  /** Bytes that are still to be written. */
  #unwritten = 0

  constructor(
    confinement: Confinement,
    folder: string,
    steps: readonly PathStep[],
    contentOf: ContentOf,
    {
      key = randomBytes(16).toString('hex'), again = false, signal, folders = NO_FOLDERS,
    }: ApplyOptions,
  ) {
    this.#folders = folders
    this.#confinement = confinement
    this.#folder = folder
    this.#contentOf = contentOf
    this.#key = key
    this.#again = again
    this.#signal = signal
    this.#steps = sortedByPath([...steps])
    this.#going = this.#steps.filter(({ after }) => after === null)
    this.#coming = this.#steps.filter(({ after }) => after !== null)
    this.#added = new Set(this.#coming.flatMap((it) => (it.before === null ? [it.path] : [])))
  }

  async run(): Promise<AppliedSteps> {
    let isPhaseTwo = this.#again
    try {
      await this.#stage()
      isPhaseTwo = true
      await this.#each(this.#going, (folders, step) => this.#remove(folders, step))
      await this.#renameCases((from, to) => [from, to])
      const inTheWay = this.#coming.filter(({ path }) => this.#inTheWay.has(path))
      await this.#each(inTheWay, (folders, { path }) => this.#vacate(folders, path))
      await this.#each(this.#coming, (folders, step) => this.#place(folders, step))
      await this.#makeFolders()
    } catch (error) {
      this.#signal?.throwIfAborted()
      // The earlier call may have come to its end, at which second names go.
      if (this.#again && !this.#isUnplaced) throw half(error)
      const missing = lacksRoom(error) ? await this.#missingBytes() : 0
      await this.#half(() => (isPhaseTwo ? this.#undo() : this.#sweep()))
      if (missing <= 0) throw error
      throw new NoRoomError((error as Error).message, missing, { cause: error })
    }
    await this.#half(async () => {
      await this.#sweep()
      await this.#removeEmptied()
      await this.#setModes()
    })
    const done = this.#steps.map(({ path }) => path).filter((path) => !this.#skipped.has(path))
    return { done, skipped: [...this.#skipped].sort(comparePaths) }
  }

  async findInTheWay(): Promise<readonly string[]> {
    await using folders = await FolderChain.open(this.#confinement)
    const going = new Set(this.#going.map(({ path }) => path))
    const found: string[] = []
    for (const path of this.#added) {
      await unlessOvertaken(path, async () => {
        if (!folders.mayEnter(path) || (await folders.at(path)) === null) return true
        return found.push(...(await this.#inFolder(folders, path, going))) > 0
      })
    }
    return found
  }

  /** Does work for steps that are not skipped yet. */
  async #each(steps: readonly PathStep[], work: StepWork): Promise<void> {
    await inLanes(this.#confinement, steps, async (folders, step) => {
      const { path } = step
      if (this.#skipped.has(path)) return
      const isDone =
        folders.mayEnter(path) && (await unlessOvertaken(path, () => work(folders, step)))
      if (!isDone) this.#skipped.add(path)
    }, this.#signal)
  }

  /** Does work after which all is as before, or as wanted. @throws {@link HalfAppliedError} */
  async #half(work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      this.#signal?.throwIfAborted()
      throw half(error)
    }
  }

  // Phase one.

  async #stage(): Promise<void> {
    if (this.#again) await this.#sweep('new')
    for (const { after } of this.#coming) this.#unwritten += after!.size
    await this.#each(this.#going, async (folders, step) => {
      const at = await placeOf(folders, step.path)
      const found = await look(at, step)
      // A folder is no file: what it holds has paths of its own.
      if (found === null || found.stats.isDirectory()) return true
      if (found.entry === null || !isSameEntry(found.entry, step.before)) return false
      this.#found.set(step.path, found.stats)
      this.#inodes.add(found.stats.ino)
      this.#isUnplaced = true
      return true
    })
    const going = new Set(this.#going.map(({ path }) => path))
    for (const path of this.#skipped) going.delete(path)
    await this.#each(this.#coming, (folders, step) => this.#stageNew(folders, step, going))
  }

  async #stageNew(
    folders: FolderChain,
    step: PathStep,
    going: ReadonlySet<string>,
  ): Promise<boolean> {
    const { path, before } = step
    const after = step.after!
    const at = await placeOf(folders, path)
    // A file that is replaced has a folder, unless another program has removed that.
    if (at === null && before !== null) return false
    if (at !== null && before !== null) await linkTo(at, this.#second(folders, path))
    const found = await look(at, step)
    const isFree = found === null || (before === null && this.#inodes.has(found.stats.ino))
    const entry = isFree ? null : found.entry
    if (entry !== null && isSameEntry(entry, after)) {
      this.#unwritten -= after.size
      return true
    }
    if (isFree && before !== null) {
      // A call that was cut off may have come as far as that.
      if (!this.#again || (await statOrNull(this.#second(folders, path))) === null) return false
    } else if (!isFree && before === null) {
      if (!found.stats.isDirectory()) return false
      if ((await this.#inFolder(folders, path, going)).length > 0) return false
      this.#inTheWay.add(path)
    } else if (!isFree && (entry === null || !isSameEntry(entry, before))) return false
    this.#isUnplaced = true
    const isKnown = entry?.sha256 === after.sha256 && entry.kind === after.kind
    const content = isKnown ? found!.content : await this.#contentOf(after)
    // That may have taken long: is its folder still where it was?
    if (((await placeOf(folders, path)) === null) !== (at === null)) return false
    await writeNew(folders.entry(this.#name('new', path)), after, content, found?.stats ?? null)
    this.#unwritten -= after.size
    this.#depths.set(path, folders.depth)
    this.#found.set(path, isFree ? null : found.stats)
    return true
  }

  /** Paths of what a folder holds besides folders and what is about to go. */
  async #inFolder(
    folders: FolderChain,
    path: string,
    going: ReadonlySet<string> = new Set(),
  ): Promise<readonly string[]> {
    const found = await below(folders, path)
    return found?.others.filter((other) => !going.has(other)) ?? [path]
  }

  async #missingBytes(): Promise<number> {
    const { bavail, bsize } = await fs.statfs(this.#folder).catch(() => ({ bavail: 0, bsize: 0 }))
    // A quota may leave less than the disk has.
    const free = bavail * bsize < this.#unwritten ? bavail * bsize : 0
    return this.#unwritten - free
  }

  // Phase two.

  /** Gives a file that goes its second name. */
  async #remove(folders: FolderChain, step: PathStep): Promise<boolean> {
    const stats = this.#found.get(step.path)
    const at = stats == null ? null : await placeOf(folders, step.path)
    if (at === null) return true
    if (!(await isStill(at, step, stats!))) return false
    const second = this.#second(folders, step.path)
    folders.changed(this.#secondDepth(step.path))
    // A call that was killed may have given it the name: renaming would do nothing.
    const isNamed = this.#again && (await statOrNull(second))?.ino === stats!.ino
    await (isNamed ? unlink(at) : rename(at, second))
    if (isSameFile(stats!, await lstat(second))) return true
    await moveInto(second, at)
    return false
  }

  /** Gives a folder that holds nothing but empty folders another name. */
  async #vacate(folders: FolderChain, path: string): Promise<boolean> {
    if ((await this.#inFolder(folders, path)).length > 0) return false
    const at = (await placeOf(folders, path))!
    const above = path.slice(0, path.lastIndexOf('/') + 1)
    const aside = `${above}${this.#name('old', path)}`
    // One that an earlier call could not put back.
    if (this.#again) await removeFolders(folders, aside)
    await placeOf(folders, path)
    const second = this.#second(folders, path)
    folders.changed()
    try {
      await rename(at, second)
    } catch (error) {
      // An overlay cannot rename folders of a lower layer, nor can a mount point be renamed.
      if (!['EXDEV', 'EBUSY'].includes(codeOf(error) ?? '')) throw error
      await removeFolders(folders, path)
      return (await statOrNull(at)) === null
    }
    if ((await this.#inFolder(folders, aside)).length === 0) return true
    await placeOf(folders, path)
    await rename(second, at)
    return false
  }

  /** Where case is ignored, gives folders their names in another case; `way` tells from which. */
  async #renameCases(way: (from: string, to: string) => readonly [string, string]): Promise<void> {
    const coming = new Map<string, string>()
    for (const { path } of this.#coming) {
      for (const above of foldersAbove(path)) coming.set(withoutCase(above), above)
    }
    const names = new Set([...coming.values()])
    const going = new Set(this.#going.flatMap(({ path }) => foldersAbove(path)))
    const pairs = [...going].sort(comparePaths).flatMap((from) => {
      const to = coming.get(withoutCase(from))
      return to === undefined || names.has(from) ? [] : [[from, to] as const]
    })
    if (pairs.length === 0) return
    await using folders = await FolderChain.open(this.#confinement)
    for (const [from, to] of pairs) {
      if (!folders.mayEnter(to)) continue
      await unlessOvertaken(to, async () => {
        await renameCase(folders, ...way(from, to), this.#name('old', from))
        return true
      })
    }
    await folders.sync()
  }

  async #place(folders: FolderChain, step: PathStep): Promise<boolean> {
    const { path } = step
    const stats = this.#found.get(path)
    if (stats === undefined) return true
    const depth = this.#depths.get(path)!
    const isNew = depth < foldersAbove(path).length
    const at = await placeOf(folders, path, isNew ? (made) => this.#made.add(made) : undefined)
    if (at === null) return false
    const from = folders.entry(this.#name('new', path), depth)
    folders.changed(depth)
    if (stats === null || stats.isDirectory()) return await moveInto(from, at)
    const second = this.#second(folders, path)
    const isLinked = (await statOrNull(second))?.ino === stats.ino
    if (!(await isStill(at, step, stats))) return false
    if (isLinked) await rename(from, at)
    else {
      await rename(at, second)
      if (!(await moveInto(from, at))) return false
    }
    if (isSameFile(stats, await lstat(second))) return true
    // It was written to in this moment.
    await rename(second, at)
    return false
  }

  /** Creates folders that hold no files. */
  async #makeFolders(): Promise<void> {
    const made = this.#folders.steps.filter(({ before }) => before === null)
    await this.#each(made.map(({ path }) => ({ path, before: null, after: null })),
      async (folders, { path }) =>
        (await folders.at(path, (at) => this.#made.add(at))) !== null)
  }

  // The end, and the way back.

  /** Undoes as much as can be undone. @throws the first reason why something could not. */
  async #undo(): Promise<void> {
    const problems: unknown[] = []
    const each = async (steps: readonly PathStep[], work: StepWork): Promise<void> => {
      await inLanes(this.#confinement, steps, async (folders, step) => {
        try {
          await unlessOvertaken(step.path, () => work(folders, step))
        } catch (error) {
          problems.push(error)
        }
      }, this.#signal).catch((error: unknown) => problems.push(error))
      this.#signal?.throwIfAborted()
    }
    await each(this.#coming, (folders, step) => this.#unplace(folders, step))
    const made = [...this.#made].sort(comparePaths).reverse()
    const ofFolders = made.map((path) => ({ path, before: null, after: null }))
    await each(ofFolders, async (folders, { path }) => {
      await removeFolder(folders, path)
      return true
    })
    await this.#renameCases((from, to) => [to, from]).catch((error) => problems.push(error))
    // Folders first: files may have been in them.
    for (const steps of [this.#coming, this.#going]) {
      await each(steps, (folders, step) => this.#putBack(folders, step))
    }
    if (problems.length > 0) throw problems[0]
    await this.#sweep()
  }

  /** Takes away what was placed; gives what was replaced its path again. */
  async #unplace(folders: FolderChain, step: PathStep): Promise<boolean> {
    const { path, before } = step
    const isOurs = this.#again || (this.#found.has(path) && !this.#skipped.has(path))
    const at = isOurs && folders.mayEnter(path) ? await placeOf(folders, path) : null
    const found = await look(at, step)
    if (at === null || found === null) return true
    const second = this.#second(folders, path)
    const kept = before === null ? null : await statOrNull(second)
    const isNew = found.entry !== null && isSameEntry(found.entry, step.after)
    if (!isNew || kept?.ino === found.stats.ino) return true
    folders.changed()
    if (before === null) await unlink(at)
    else if (kept !== null) await rename(second, at)
    else if (this.#key === '') throw new Error(`the old content of ${path} is gone`)
    return true
  }

  /** Gives what has a second name its path again, unless something is there. */
  async #putBack(folders: FolderChain, { path, before }: PathStep): Promise<boolean> {
    if (!folders.mayEnter(path)) return true
    const depth = this.#secondDepth(path)
    if ((await folders.at(foldersAbove(path)[depth - 1] ?? '')) === null) return true
    const name = this.#name('old', path)
    const kept = await statOrNull(folders.entry(name))
    // A path that was added can have replaced only a folder.
    if (kept === null || kept.isDirectory() !== (before === null)) return true
    const at = (await placeOf(folders, path, () => undefined))!
    // A folder that was made in its place goes.
    if ((await statOrNull(at))?.isDirectory() === true) await removeFolders(folders, path)
    await placeOf(folders, path)
    folders.changed(depth)
    return await moveInto(folders.entry(name, depth), at)
  }

  /** Removes temporary files and second names, or only those of new contents. */
  async #sweep(only?: 'new'): Promise<void> {
    const own = new Set(this.#coming.map(({ path }) => this.#name('new', path)))
    if (only === undefined) for (const { path } of this.#steps) own.add(this.#name('old', path))
    await using folders = await FolderChain.open(this.#confinement)
    // Another program may have moved their folder.
    const isMoved = only === undefined && this.#skipped.size > 0
    const all = isMoved ? ((await below(folders, '', Infinity))?.folders ?? []) : []
    const above = this.#steps.flatMap(({ path }) => foldersAbove(path))
    for (const path of [...new Set(['', ...above, ...all])].sort(comparePaths)) {
      this.#signal?.throwIfAborted()
      if (path !== '' && !folders.mayEnter(path)) continue
      await unlessOvertaken(path, async () => {
        const folder = await folders.at(path)
        if (folder === null) return true
        const entries = await readdir(folder.self, { withFileTypes: true })
        for (const { name } of entries) {
          if (own.has(name)) await removeOwn(folders, path === '' ? name : `${path}/${name}`)
        }
        return true
      })
    }
  }

  /** Removes the folders that have become empty, and are not needed. */
  async #removeEmptied(): Promise<void> {
    const { kept, steps } = this.#folders
    const emptied = new Set(this.#going.flatMap(({ path }) => foldersAbove(path)))
    for (const path of kept.keys()) emptied.delete(path)
    for (const { path, after } of steps) if (after === null) emptied.add(path)
    for (const { path } of this.#coming) {
      emptied.delete(path)
      for (const above of foldersAbove(path)) emptied.delete(above)
    }
    if (emptied.size === 0) return
    await using folders = await FolderChain.open(this.#confinement)
    for (const path of [...emptied].sort(comparePaths).reverse()) await removeFolder(folders, path)
    await folders.sync()
  }

  /** Sets permissions of folders, innermost first: some cannot be entered afterwards. */
  async #setModes(): Promise<void> {
    const { kept, known, steps } = this.#folders
    if (known === null) return
    const changed = new Set(steps.flatMap(({ path, after }) => (after === null ? [] : [path])))
    for (const { path } of this.#coming) {
      for (const above of foldersAbove(path)) if (!known.has(above)) changed.add(above)
    }
    if (changed.size === 0) return
    await using folders = await FolderChain.open(this.#confinement)
    for (const path of [...changed].sort(comparePaths).reverse()) {
      const mode = kept.get(path)
      if (mode === undefined || !folders.mayEnter(path)) continue
      await unlessOvertaken(path, () => setMode(folders, path, known.get(path), mode))
    }
    await folders.sync()
  }

  // Names of temporary files.

  /** How deep the folder is that has the second name of a path: none that must go itself. */
  #secondDepth(path: string): number {
    const above = foldersAbove(path)
    const inTheWay = above.findIndex((it) => this.#added.has(it))
    return inTheWay < 0 ? above.length : inTheWay
  }

  /** The second name of a path whose folder is in use. */
  #second(folders: FolderChain, path: string): At {
    return folders.entry(this.#name('old', path), this.#secondDepth(path))
  }

  #name(kind: 'new' | 'old', path: string): string {
    // Earlier versions had no key, and only names for new contents.
    const text = this.#key === '' && kind === 'new' ? '' : `${this.#key} ${kind} `
    const bytes = Buffer.concat([Buffer.from(text), bytesOfName(path)])
    return `.runwright-${hash('sha256', bytes).slice(0, 16)}.tmp`
  }
}
