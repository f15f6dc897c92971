/**
 * Changing a folder path by path, so that a restore or an apply can be cut off at any moment and
 * done again from the beginning.
 *
 * 1. A path that has what it shall have is done. One that is neither that nor what was expected was
 *    changed by somebody else, and is left alone.
 * 2. A file is written beside its place and renamed, or linked, into it: it is the old or the new
 *    one, never a part. The temporary name follows from the path, so that the next attempt removes
 *    what the last one left.
 * 3. Folders are entered through their descriptors, never through a link (see `paths.ts`). Closed
 *    folders and what belongs to git are never entered.
 * 4. First what goes, then the folders that are empty thereby, then what comes: so a file can take
 *    the place of a folder, and the other way round. Within that, several files at once: each waits
 *    for the disk.
 *
 * @module
 */
import { constants, type Stats } from 'node:fs'
import {
  link, lstat, mkdir, open, readdir, readlink, rename, rmdir, symlink, unlink, type FileHandle,
} from 'node:fs/promises'
import { join } from 'node:path'
import { bytesOfName, hash, nameOfBytes } from '../../internal/bytes.js'
import { throwIfExhausted } from '../exhaustion.js'
import type { ContentOf, TreeEntry } from '../tree.js'
import { explain } from './files.js'
import { isPassedOver } from './left-out.js'
import { comparePaths, foldersAbove, isSameEntry, sortedByPath } from './net-changes.js'
import {
  codeOf, confine, FOLDER_FLAGS, HAS_PROC, isRepositoryAt, OpenFolder, type Confinement,
} from './paths.js'
import type { PathStep } from './plan-steps.js'
import { isSameStats } from './walk-folder.js'

export { planApply, planRestore, type ApplyPlan, type PathStep } from './plan-steps.js'

/** What became of the steps, by path. */
export interface AppliedSteps {
  readonly done: readonly string[]
  /** Left alone: see rules 1 and 3. */
  readonly skipped: readonly string[]
}

/**
 * Does the steps, in any state in which an earlier call may have left the folder.
 *
 * @param folder a path to it, such as `/proc/self/fd/N`
 * @throws {@link WorkspaceError} when the system refuses a step: permissions, or a full disk. Steps
 * before it are done, and calling again goes on; what `contentOf` throws.
 */
export async function applySteps(
  folder: string,
  steps: readonly PathStep[],
  contentOf: ContentOf,
  options: { readonly closed?: readonly string[] | undefined } = {},
): Promise<AppliedSteps> {
  const confinement = await confine(folder, undefined, options.closed ?? [], folder)
  const skipped = new Set<string>()
  const each = (these: readonly PathStep[], work: StepWork): Promise<void> =>
    inLanes(confinement, these, async (folders, step) => {
      const { path } = step
      const isDone =
        folders.mayEnter(path) && (await unlessOvertaken(path, () => work(folders, step)))
      if (!isDone) skipped.add(path)
      return isDone
    })
  const sorted = sortedByPath([...steps])
  const coming = sorted.filter(({ after }) => after !== null)
  const emptied = new Set<string>()
  await each(sorted.filter(({ after }) => after === null), async (folders, step) => {
    const isDone = await remove(folders, step)
    if (isDone) for (const above of foldersAbove(step.path)) emptied.add(above)
    return isDone
  })
  for (const { path } of coming) for (const above of foldersAbove(path)) emptied.delete(above)
  if (emptied.size > 0) {
    await using folders = await FolderChain.open(confinement)
    for (const path of [...emptied].sort(comparePaths).reverse()) await removeEmpty(folders, path)
  }
  await each(coming, (folders, step) => write(folders, step, contentOf))
  const done = sorted.filter(({ path }) => !skipped.has(path)).map(({ path }) => path)
  return { done, skipped: [...skipped].sort(comparePaths) }
}

/** What is done for a step; false when it is skipped. */
type StepWork = (folders: FolderChain, step: PathStep) => Promise<boolean>

/** Steps that are done at once: more would wait for the threads that Node has for files. */
const LANES = 4
/** Sorted steps that one lane does in a row, most of them in one folder. */
const RUN = 32
/** Bytes of files of which several may be in memory. */
const MAX_SMALL = 1024 * 1024

/** Does steps whose order does not matter. When one fails, those that have begun end first. */
async function inLanes(
  confinement: Confinement,
  steps: readonly PathStep[],
  work: StepWork,
): Promise<void> {
  const isSmall = ({ before, after }: PathStep): boolean =>
    Math.max(before?.size ?? 0, after?.size ?? 0) <= MAX_SMALL
  const small = steps.filter(isSmall)
  const runs = [steps.filter((step) => !isSmall(step))]
  for (let at = 0; at < small.length; at += RUN) runs.push(small.slice(at, at + RUN))
  const failures: unknown[] = []
  const lane = async (): Promise<void> => {
    await using folders = await FolderChain.open(confinement)
    for (let run = runs.shift(); run !== undefined; run = runs.shift()) {
      for (const step of run) {
        if (failures.length > 0) return
        await work(folders, step)
      }
    }
  }
  const lanes = Array.from({ length: Math.min(LANES, runs.length) }, () =>
    lane().catch((error: unknown) => failures.push(error)),
  )
  await Promise.all(lanes)
  if (failures.length > 0) throw failures[0]
}

/** False when something else came to be there, or went, since it was looked at. */
async function unlessOvertaken(path: string, work: () => Promise<boolean>): Promise<boolean> {
  try {
    return await work()
  } catch (error) {
    // Faults of the machine, and those of who gives the contents, are not about this path.
    throwIfExhausted(error)
    if (OVERTAKEN.has(codeOf(error) ?? '')) return false
    if (typeof (error as NodeJS.ErrnoException).syscall !== 'string') throw error
    return await explain(path, () => Promise.reject(error as Error))
  }
}

/** Codes that tell of a change by somebody else. */
const OVERTAKEN: ReadonlySet<string> = new Set([
  'EEXIST', 'EISDIR', 'ELOOP', 'ENOENT', 'ENOTDIR', 'ENOTEMPTY', 'ESTALE',
])
/** Codes of file systems that have no hard links. */
const NO_LINKS: ReadonlySet<string> = new Set([
  'EMLINK', 'ENOSYS', 'ENOTSUP', 'EOPNOTSUPP', 'EPERM',
])

/** Links are not followed, and opening a FIFO or terminal neither blocks nor takes it over. */
const READ_FLAGS =
  constants.O_RDONLY |
  (constants.O_NOFOLLOW ?? 0) |
  (constants.O_NONBLOCK ?? 0) |
  (constants.O_NOCTTY ?? 0)
const CREATE_FLAGS =
  constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | (constants.O_NOFOLLOW ?? 0)

/** Removes a file; false when it is another one. */
async function remove(folders: FolderChain, step: PathStep): Promise<boolean> {
  const place = await Place.of(folders, step.path, false)
  if (place === null) return true
  await place.removeTemporary()
  const found = await place.look(step)
  // A folder is no file: what it holds has paths of its own.
  if (found === null || found.stats.isDirectory()) return true
  if (found.entry === null || !isSameEntry(found.entry, step.before)) return false
  if (!(await place.isStill(found.stats))) return false
  folders.changed()
  await unlink(place.at)
  return true
}

async function removeEmpty(folders: FolderChain, path: string): Promise<void> {
  try {
    const place = folders.mayEnter(path) ? await Place.of(folders, path, false) : null
    if (place === null) return
    await rmdir(place.at)
    folders.changed()
  } catch (error) {
    throwIfExhausted(error)
    // It holds something, is in use, or is no folder.
  }
}

/** Removes a folder that holds nothing but folders; false when it holds anything else. */
async function removeEmptyFolders(folders: FolderChain, path: string): Promise<boolean> {
  const found = [path]
  for (const at of found) {
    const folder = folders.mayEnter(at) ? await folders.at(at, false) : null
    if (folder === null || found.length > MAX_EMPTY) return false
    const entries = await readdir(folder.self, { encoding: 'buffer', withFileTypes: true })
    for (const entry of entries) {
      const name = nameOfBytes(entry.name)
      if (!entry.isDirectory() || isPassedOver(name)) return false
      found.push(`${at}/${name}`)
    }
  }
  for (const at of found.reverse()) await removeEmpty(folders, at)
  const above = await Place.of(folders, path, false)
  return above !== null && (await above.look({ path, before: null, after: null })) === null
}

/** Writes a file or link; false when there is another one. */
async function write(
  folders: FolderChain,
  step: PathStep,
  contentOf: ContentOf,
): Promise<boolean> {
  const { path, before } = step
  const after = step.after!
  // What shall be replaced has a folder, unless somebody else has removed it.
  const place = await Place.of(folders, path, before === null)
  if (place === null) return false
  await place.removeTemporary()
  const found = await place.look(step)
  // Trees know no empty folders: one that is left must not keep a file from its place.
  if (before === null && found?.stats.isDirectory() === true) {
    if (!(await removeEmptyFolders(folders, path))) return false
    return await write(folders, step, contentOf)
  }
  const entry = found?.entry ?? null
  if (entry !== null && isSameEntry(entry, after)) return true
  if (found === null ? before !== null : entry === null || !isSameEntry(entry, before)) return false
  const isKnown = entry?.sha256 === after.sha256 && entry.kind === after.kind
  const content = isKnown ? found!.content : await contentOf(after)
  // That may have taken long: is it still where it was?
  const now = await Place.of(folders, path, false)
  if (now === null) return false
  folders.changed()
  if (found === null) return await now.create(after, content)
  return await now.replace(found.stats, after, content)
}

/** What is at a path. */
interface Found {
  readonly stats: Stats
  /** Null for what is neither file nor link, or has another size than any that is expected. */
  readonly entry: TreeEntry | null
  readonly content: Uint8Array
}

const NOTHING = new Uint8Array()
/** Empty folders in one that has to make room. */
const MAX_EMPTY = 1_000

/** A name in an open folder. */
class Place {
  readonly at: string | Buffer
  readonly #temporary: string | Buffer

  private constructor(folder: OpenFolder, name: string, path: string) {
    this.at = bytePath(folder.entry(name))
    const own = hash('sha256', bytesOfName(path)).slice(0, 16)
    this.#temporary = folder.entry(`.runwright-${own}.tmp`)
  }

  /** Null when its folder does not exist, and is not made. */
  static async of(folders: FolderChain, path: string, make: boolean): Promise<Place | null> {
    const slash = path.lastIndexOf('/')
    const folder = await folders.at(path.slice(0, Math.max(0, slash)), make)
    return folder === null ? null : new Place(folder, path.slice(slash + 1), path)
  }

  /** Removes what an earlier attempt left. */
  async removeTemporary(): Promise<void> {
    await unlink(this.#temporary).catch((error: unknown) => {
      if (codeOf(error) !== 'ENOENT') throw error
    })
  }

  /** What is here now; null for nothing. */
  async look({ before, after }: PathStep): Promise<Found | null> {
    const stats = await this.#stats()
    if (stats === null) return null
    const nothing = { stats, entry: null, content: NOTHING }
    if (stats.isSymbolicLink()) {
      const content = await readlink(this.at, { encoding: 'buffer' }).catch((error: unknown) => {
        throw codeOf(error) === 'EINVAL' ? overtaken() : error
      })
      return { stats, entry: entryOf('link', 0o777, content), content }
    }
    if (!stats.isFile() || ![before?.size, after?.size].includes(stats.size)) return nothing
    await using handle = await open(this.at, READ_FLAGS)
    const opened = await handle.stat()
    if (!isSameStats(stats, opened)) return nothing
    const content = await readWhole(handle, stats.size)
    return { stats, entry: entryOf('file', stats.mode & 0o777, content), content }
  }

  async #stats(): Promise<Stats | null> {
    return await lstat(this.at).catch((error: unknown) => {
      if (codeOf(error) === 'ENOENT') return null
      throw error
    })
  }

  /** False when it was changed since it was looked at. */
  async isStill(stats: Stats): Promise<boolean> {
    return isSameStats(stats, await lstat(this.at))
  }

  /** Makes what is not there; false when somebody else has made it meanwhile. */
  async create(entry: TreeEntry, content: Uint8Array): Promise<boolean> {
    if (entry.kind === 'link') {
      await symlink(Buffer.from(content), this.at)
      return true
    }
    return await this.#throughTemporary(entry, content, async () => {
      try {
        // Other than renaming, this does not replace anything.
        await link(this.#temporary, this.at)
        await unlink(this.#temporary)
      } catch (error) {
        if (!NO_LINKS.has(codeOf(error) ?? '')) throw error
        if ((await this.#stats()) !== null) return false
        await rename(this.#temporary, this.at)
      }
      return true
    })
  }

  /** Replaces what was looked at; false when somebody else has changed it meanwhile. */
  async replace(stats: Stats, entry: TreeEntry, content: Uint8Array): Promise<boolean> {
    return await this.#throughTemporary(entry, content, async () => {
      if (!(await this.isStill(stats))) return false
      await rename(this.#temporary, this.at)
      return true
    })
  }

  async #throughTemporary(
    { kind, mode }: TreeEntry,
    content: Uint8Array,
    place: () => Promise<boolean>,
  ): Promise<boolean> {
    let isPlaced = false
    try {
      if (kind === 'link') await symlink(Buffer.from(content), this.#temporary)
      else {
        await using handle = await open(this.#temporary, CREATE_FLAGS, 0o600)
        await handle.writeFile(content)
        await handle.chmod(mode)
        await handle.datasync()
      }
      isPlaced = await place()
    } finally {
      if (!isPlaced) await unlink(this.#temporary).catch(() => undefined)
    }
    return isPlaced
  }
}

function entryOf(kind: TreeEntry['kind'], mode: number, content: Uint8Array): TreeEntry {
  return { kind, mode, sha256: hash('sha256', content), size: content.length }
}

/** The first `size` bytes; fewer when the file has become shorter. */
async function readWhole(handle: FileHandle, size: number): Promise<Uint8Array> {
  const buffer = Buffer.allocUnsafe(size)
  for (let length = 0; length < size; ) {
    const { bytesRead } = await handle.read(buffer, length, size - length, length)
    if (bytesRead === 0) return buffer.subarray(0, length)
    length += bytesRead
  }
  return buffer
}

/** A path whose names need not be UTF-8. */
function bytePath(path: string): string | Buffer {
  return /\p{Surrogate}/u.test(path) ? bytesOfName(path) : path
}

/** The folders that lead to the one in use, held open. Steps by path use most of them again. */
class FolderChain implements AsyncDisposable {
  readonly #confinement: Confinement
  /** From the top; the names of those below. */
  readonly #folders: OpenFolder[]
  readonly #names: string[] = []
  /** Those of them in which names changed. */
  readonly #changed: Set<OpenFolder> = new Set()

  private constructor(confinement: Confinement, top: OpenFolder) {
    this.#confinement = confinement
    this.#folders = [top]
  }

  static async open(confinement: Confinement): Promise<FolderChain> {
    return new FolderChain(confinement, await confinement.openFolder(confinement.root))
  }

  /** False for paths that no run may use. */
  mayEnter(path: string): boolean {
    const names = path.split('/')
    const isName = (name: string): boolean =>
      name !== '' && name !== '.' && name !== '..' && !name.includes('\0')
    return names.every(isName) && this.#confinement.holds(join(this.#confinement.root, path))
  }

  /** The folder in use now has other names than before. */
  changed(): void {
    this.#changed.add(this.#folders.at(-1)!)
  }

  /**
   * Opens a folder by its relative path. Null when it does not exist and is not made.
   *
   * @throws an error with a code of `OVERTAKEN` when something else is there.
   */
  async at(path: string, make: boolean): Promise<OpenFolder | null> {
    const names = path === '' ? [] : path.split('/')
    let same = 0
    while (same < names.length && names[same] === this.#names[same]) same += 1
    while (this.#names.length > same) await this.#leave()
    // Somebody may have moved one of them away meanwhile, even out of the workspace.
    while (this.#names.length > 0 && !(await this.#isInPlace())) await this.#leave()
    same = this.#names.length
    for (const name of names.slice(same)) {
      const folder = await this.#enter(name, make)
      if (folder === null) return null
      this.#folders.push(folder)
      this.#names.push(name)
      if (isRepositoryAt(folder)) throw overtaken()
    }
    return this.#folders.at(-1)!
  }

  async #isInPlace(): Promise<boolean> {
    const { path, real } = this.#folders.at(-1)!
    return !HAS_PROC || (await readlink(path, { encoding: 'buffer' })).equals(bytesOfName(real))
  }

  async #enter(name: string, make: boolean): Promise<OpenFolder | null> {
    const above = this.#folders.at(-1)!
    const at = bytePath(above.entry(name))
    const real = join(above.real, name)
    try {
      return new OpenFolder(await open(at, FOLDER_FLAGS), real)
    } catch (error) {
      if (!make && ['ENOENT', 'ENOTDIR', 'ELOOP'].includes(codeOf(error)!)) return null
      if (codeOf(error) !== 'ENOENT') throw error
    }
    this.#changed.add(above)
    // Another lane may have made it meanwhile.
    await mkdir(at).catch((error: unknown) => {
      if (codeOf(error) !== 'EEXIST') throw error
    })
    return new OpenFolder(await open(at, FOLDER_FLAGS), real)
  }

  async #leave(): Promise<void> {
    this.#names.pop()
    await using folder = this.#folders.pop()!
    if (!this.#changed.delete(folder)) return
    try {
      await using handle = await open(folder.self, constants.O_RDONLY | constants.O_DIRECTORY)
      await handle.sync()
    } catch (error) {
      throwIfExhausted(error)
      // It cannot be read, or its file system cannot do that.
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    while (this.#folders.length > 0) await this.#leave()
  }
}

/** For what is in the way: a repository, or what was a link just now. */
function overtaken(): Error {
  return Object.assign(new Error('something else is in the way'), { code: 'ENOTDIR' })
}
