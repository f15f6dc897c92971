/**
 * Copies a folder, synchronously: it runs in a worker, see `copy.ts`.
 *
 * 1. Links are copied as links, and nothing is reached through one: folders are entered through
 *    descriptors, files are opened without following links.
 * 2. A file is as it was at one moment, as far as two looks at its times can tell; one that goes on
 *    changing is named.
 * 3. Content is shared with the original where the file system can share blocks, and copied where
 *    it cannot. There are no hard links between copy and original.
 * 4. What leads back into the original leads into the copy: see `copied-links.ts`,
 *    `copied-paths.ts` and `copied-git.ts`.
 * 5. Objects of a repository are copied after what refers to them.
 * 6. An error with the code of the system is of the copy, or says that the machine has no more
 *    resources: of what else the original answers, only the message is left.
 *
 * @module
 */
import {
  closeSync, constants, copyFileSync, fchmodSync, fstatSync, ftruncateSync, futimesSync, linkSync,
  lstatSync, lutimesSync, mkdirSync, openSync, readlinkSync, readSync, realpathSync, symlinkSync,
  unlinkSync, utimesSync, writeFileSync, writeSync, type Stats,
} from 'node:fs'
import { PACKAGE_CACHES } from '../executor.js'
import { lacksResources, throwIfExhausted } from '../exhaustion.js'
import { bareSettings, isLeftOutOfBare, isTopOfGit, leadsElsewhere } from './bare-repository.js'
import { CopiedRepositories, isPointer, mayLeadOut, NO_REPOSITORY } from './copied-git.js'
import { copiedLink, type CopiedFolder } from './copied-links.js'
import { CopiedPaths, isState, MAX_STATE_BYTES } from './copied-paths.js'
import { CopyNotes } from './copy-notes.js'
import { isRepository } from './git-names.js'
import { canBeMounted } from './mountable.js'
import { codeOf, HAS_PROC } from './paths.js'
import { rawPath, toSystem, toText, type RawPath } from './raw-paths.js'
import {
  kindOf, READ_FLAGS, walkFolder, WalkedFolder, WorkStopped, type ListedEntry, type Walked,
} from './walk-folder.js'

/** What to copy, and how. All folders are absolute, real paths. */
export interface CopyJob {
  readonly from: string
  /** Does not exist; the folder above it does. */
  readonly to: string
  /** First: `from`, and where its copy will be found. Then other folders that are copied. */
  readonly copies: readonly { readonly from: string; readonly to: string }[]
  readonly closed: readonly string[]
  readonly maxBytes: number
  /** May folders of dependencies be left to be mounted? */
  readonly mounts: boolean
  /** Does everything in the copy get access time 0? */
  readonly unread?: boolean
  /** Is it for a sealed check? */
  readonly sealed?: boolean
  /** What is not copied, be it a file, a link or a folder. */
  readonly without?: readonly string[]
}

/** What was copied. */
export interface CopyResult {
  readonly files: number
  readonly bytes: number
  /** Relative paths of folders of packages that are empty, to be mounted read-only. */
  readonly readOnly: readonly string[]
  /** Is there a file of Python, outside of dependencies? */
  readonly hasPython: boolean
  readonly notes: readonly string[]
}

/** Thrown for an entry that is something else by now. */
class KindChanged extends Error {}

/** What the entries of a folder belong to. */
interface Zone {
  readonly isDependency: boolean
  readonly isRepository: boolean
  /** Is the folder itself a repository, in or below a folder with the name `.git`? */
  readonly isTop: boolean
}

/** A folder that is being copied. */
interface Place {
  /** Its path in the original and, below `from`, in the copy. */
  readonly real: RawPath
  readonly relative: RawPath
  /** By which its entries are reached. */
  readonly source: RawPath
  readonly target: RawPath
  readonly zone: Zone
}

/** One whose copy is open. */
interface OpenPlace extends Place {
  readonly copy: number
  readonly stats: Stats
}

/** What an entry counts besides its content: name and attributes take up space as well. */
export const ENTRY_BYTES = 256
/** Files up to this size are read at once, and looked through for paths; see `#holdsPaths`. */
const SMALL = 1024 * 1024
/** Zeros that are not written to files with holes. */
const HOLE = Buffer.alloc(64 * 1024)
const ATTEMPTS = 3
const FOLDER_FLAGS = READ_FLAGS | constants.O_DIRECTORY
const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL
/** Folders whose content is installed, with links and paths that lead to it. */
const DEPENDENCIES: ReadonlySet<string> = new Set(['node_modules', '.venv', 'venv'])
/** Codes of files that cannot be read. */
const UNREADABLE: ReadonlySet<string> = new Set(['EACCES', 'EPERM', 'EIO', 'ESTALE'])
/** Codes of what is something else by now; `EINVAL` is of `readlink`. */
const OTHER_KIND: ReadonlySet<string> = new Set(['ENOTDIR', 'ELOOP', 'ENXIO', 'EINVAL', 'EISDIR'])
/** What `FICLONE` fails with where blocks cannot be shared. */
const CANNOT_SHARE: ReadonlySet<string> = new Set([
  'ENOTSUP', 'EOPNOTSUPP', 'EXDEV', 'EINVAL', 'ENOTTY', 'ENOSYS', 'EPERM',
])

/** See the comment of this file. */
export class TreeCopy {
  readonly #job: CopyJob
  readonly #to: RawPath
  readonly #isAborted: () => boolean
  readonly #copies: readonly CopiedFolder[]
  readonly #closed: ReadonlySet<RawPath>
  readonly #without: ReadonlySet<RawPath>
  readonly #paths: CopiedPaths
  readonly #repositories: CopiedRepositories
  readonly #notes = new CopyNotes()
  readonly #readOnly: string[] = []
  /** Folders that are being copied, the innermost last. */
  readonly #places: OpenPlace[] = []
  /** The folder that is entered next. */
  #next: Place | null = null
  readonly #buffer = Buffer.allocUnsafeSlow(SMALL)
  /** Copies of files with several names, by device and inode. */
  readonly #linked: Map<string, RawPath> = new Map()
  /** Can blocks be shared, by the device of the original? */
  readonly #canShare: Map<number, boolean> = new Map()
  /** Permissions that new files are not given. */
  readonly #umask: number = process.umask()
  #files = 0
  #bytes = 0
  #hasPython = false

  constructor(job: CopyJob, isAborted: () => boolean) {
    this.#job = job
    this.#to = rawPath(job.to)
    this.#isAborted = isAborted
    this.#copies = job.copies.map(({ from, to }) => ({ from: rawPath(from), to: rawPath(to) }))
    this.#closed = new Set([job.to, ...job.closed].map(rawPath))
    this.#without = new Set(job.without?.map(rawPath))
    this.#paths = new CopiedPaths(this.#copies)
    this.#repositories = new CopiedRepositories(this.#copies, this.#paths)
  }

  run(): CopyResult {
    const real = rawPath(this.#job.from)
    const isDependency = DEPENDENCIES.has(nameOf(real))
    const zone = { isDependency, isRepository: false, isTop: false }
    const place = { real, relative: '', source: real, target: this.#to, zone }
    using folder = ofOriginal(() => openedAt(real))
    if (this.#job.mounts && nameOf(real) === 'node_modules' && this.#isMountable(place)) {
      mkdirSync(toSystem(this.#to), 0o755)
      this.#readOnly.push('')
    } else this.#all(folder, place)
    const [files, bytes, readOnly] = [this.#files, this.#bytes, this.#readOnly]
    const [hasPython, notes] = [this.#hasPython, this.#notes.sentences()]
    return { files, bytes, readOnly, hasPython, notes }
  }

  /** Copies an open folder with all that is in it. */
  #all(folder: WalkedFolder, place: Place): void {
    const isAborted = this.#isAborted
    this.#next = place
    const walk = this.#unlessMissed('', () =>
      walkFolder(folder, { isAborted, listed: (entries) => this.#listed(entries) }),
    )
    try {
      this.#begin(folder)
      for (const found of walk ?? []) this.#entry(found, found.kind)
      this.#end()
    } finally {
      for (const { copy } of this.#places) closeSync(copy)
    }
  }

  /** Finds out what the entries of the next folder belong to. */
  #listed(entries: ListedEntry[]): void {
    const zone = zoneOf(this.#next!, entries.map(({ name }) => name))
    // What refers to objects is copied before them.
    const last = ({ name }: ListedEntry): number => Number(name === 'objects')
    if (zone.isRepository) entries.sort((a, b) => last(a) - last(b))
    this.#next = { ...this.#next!, zone }
  }

  /** Makes the copy of the next folder, which is open; what is copied now is in it. */
  #begin(folder: WalkedFolder): void {
    const place = this.#next!
    const stats = ofOriginal(() => folder.ownStats)
    mkdirSync(toSystem(place.target), 0o700)
    const copy = openSync(toSystem(place.target), FOLDER_FLAGS)
    const target = HAS_PROC ? `/proc/self/fd/${copy}` : place.target
    this.#places.push({ ...place, source: folder.at, target, copy, stats })
  }

  /** Gives the copy of the innermost folder its permissions and times. */
  #end(): void {
    const { copy, stats } = this.#places.pop()!
    try {
      fchmodSync(copy, stats.mode & 0o1777)
      futimesSync(copy, this.#accessTime(stats), stats.mtimeMs / 1000)
    } finally {
      closeSync(copy)
    }
  }

  #entry(found: Walked, kind: Kind, attempt = 1): void {
    const { name, path } = found
    const place = this.#places.at(-1)!
    const { real, zone } = place
    if (this.#closed.has(`${real}/${name}`) || this.#without.has(`${real}/${name}`)) return
    if (this.#job.sealed === true && this.#isUnsealed(place, name, kind)) return
    if (zone.isRepository && name.endsWith('.lock')) return
    this.#count(ENTRY_BYTES)
    if (name.endsWith('.py') && !zone.isDependency) this.#hasPython = true
    try {
      this.#copyAs(kind, found, place)
    } catch (error) {
      if (!(error instanceof KindChanged)) throw error
      if (attempt === ATTEMPTS) return this.#notes.add('changing', path)
      const now = ofOriginal(() => found.stat())
      if (now !== null) this.#entry(found, kindOf(now), attempt + 1)
    }
  }

  #copyAs(kind: Kind, found: Walked, place: OpenPlace): void {
    const { name, path } = found
    if (kind === 'folder') this.#subfolder(found, place)
    else if (kind === 'link') this.#link(place, name, path)
    else if (kind === 'other') this.#notes.add('special', path)
    else if (this.#job.sealed === true && place.zone.isTop && name === 'config') {
      this.#settings(place, name, path)
    } else this.#file(place, name, path)
  }

  /** Is it something with which an agent could have a sealed check run other code? */
  #isUnsealed({ real, zone }: Place, name: RawPath, kind: Kind): boolean {
    if (kind === 'folder' && name === '__pycache__') return true
    if (PACKAGE_CACHES.has(name) && nameOf(real) === 'node_modules') return true
    if (!zone.isTop) return false
    return isLeftOutOfBare(name) || (name === 'config' && kind !== 'file')
  }

  /** Copies the settings of a repository of which only what git needs is to be left. */
  #settings({ source, target }: Place, name: RawPath, path: RawPath): void {
    const file = this.#unlessMissed(path, () => openSync(toSystem(`${source}/${name}`), READ_FLAGS))
    if (file === null) return
    try {
      const [stats, settings] = ofOriginal(() => [fstatSync(file), this.#read(file, SMALL)])
      const copy = toSystem(`${target}/${name}`)
      writeFileSync(copy, bareSettings(settings), { flag: 'wx' })
      utimesSync(copy, this.#accessTime(stats), stats.mtimeMs / 1000)
      this.#files += 1
    } finally {
      closeSync(file)
    }
  }

  #subfolder(found: Walked, { real: parent, target, zone: around }: OpenPlace): void {
    const { at: source, name, path: relative } = found
    const zone = DEPENDENCIES.has(name) ? { ...around, isDependency: true } : around
    const real = `${parent}/${name}`
    const inner = { real, relative, source, target: `${target}/${name}`, zone }
    if (found.isDeepest) return this.#notes.add('deep', relative)
    if (zone.isRepository && this.#isForeignWorktree(inner)) {
      return this.#notes.add('worktree', relative)
    }
    if (this.#job.mounts && name === 'node_modules' && this.#isMountable(inner)) {
      mkdirSync(toSystem(inner.target), 0o755)
      this.#readOnly.push(toText(relative)!)
      return this.#notes.add('readOnly', relative)
    }
    this.#next = inner
    const folder = this.#unlessMissed(relative, () => found.enter({ left: () => this.#end() }))
    if (folder !== null) this.#begin(folder)
  }

  #isMountable({ real, relative }: Place): boolean {
    if (toText(relative) === undefined) return false
    return canBeMounted(real, this.#copies, this.#paths, this.#closed, (file) => {
      const probe = toSystem(`${this.#to}.shares-blocks`)
      const out = openSync(probe, NEW_FILE)
      unlinkSync(probe)
      try {
        return this.#share(file, fstatSync(file).dev, out)
      } finally {
        closeSync(out)
      }
    })
  }

  /** Is it the administration of a linked working tree that is outside? */
  #isForeignWorktree({ real, relative, source }: Place): boolean {
    if (!/(^|\/)worktrees\/[^/]+$/.test(real)) return false
    const gitdir = this.#unlessMissed(`${relative}/gitdir`, () =>
      openSync(toSystem(`${source}/gitdir`), READ_FLAGS),
    )
    if (gitdir === null) return false
    try {
      return this.#repositories.leadsOut(real, ofOriginal(() => this.#read(gitdir, SMALL)))
    } finally {
      closeSync(gitdir)
    }
  }

  #link(place: Place, name: RawPath, path: RawPath): void {
    const source = toSystem(`${place.source}/${name}`)
    const found = this.#unlessMissed(path, () => ({
      text: readlinkSync(source, 'latin1'), stats: lstatSync(source),
    }))
    if (found === null) return
    const { target, kind, end } = copiedLink(place.real, found.text, this.#copies)
    const copy = toSystem(`${place.target}/${name}`)
    const { isRepository: isInside } = place.zone
    const isSealed = this.#job.sealed === true && isRepositoryName(name)
    if (isSealed || (kind === 'outside' && (isInside || isRepositoryName(name)))) {
      this.#notes.add(isInside ? 'gitLink' : 'repository', path)
      if (name === '.git') writeFileSync(copy, NO_REPOSITORY, { flag: 'wx' })
      return
    }
    if (kind === 'outside' && !isOfSystem(end, name, place.zone)) this.#notes.add('outside', path)
    symlinkSync(toSystem(target), copy)
    lutimesSync(copy, this.#accessTime(found.stats), found.stats.mtimeMs / 1000)
    this.#files += 1
  }

  #file(place: Place, name: RawPath, path: RawPath): void {
    const source = this.#unlessMissed(path, () =>
      openSync(toSystem(`${place.source}/${name}`), READ_FLAGS),
    )
    if (source === null) return
    const target = `${place.target}/${name}`
    try {
      this.#opened(source, target, place, path)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).syscall !== 'read') throw error
      unlinkIfThere(target)
      this.#missed(error, path)
    } finally {
      closeSync(source)
    }
  }

  #opened(source: number, target: RawPath, place: Place, path: RawPath): void {
    let before = ofOriginal(() => fstatSync(source))
    if (before.isDirectory()) throw new KindChanged()
    if (!before.isFile()) return this.#notes.add('special', path)
    const key = before.nlink > 1 ? ofOriginal(() => inodeOf(source)) : ''
    if (key !== '' && this.#linkedTo(key, target)) return
    this.#count(before.size)
    for (let attempt = 1; ; attempt++) {
      const outcome = this.#content(source, before, target, place, path)
      if (outcome === 'left out') return
      const after = ofOriginal(() => fstatSync(source))
      if (outcome === 'whole' && isSame(before, after)) break
      if (attempt === ATTEMPTS) {
        this.#notes.add('changing', path)
        break
      }
      unlinkIfThere(target)
      this.#count(Math.max(after.size - before.size, 0))
      before = after
    }
    this.#files += 1
    // By the whole path, since that of the folder is valid only while it is open.
    if (key !== '') this.#linked.set(key, `${this.#to}/${path}`)
  }

  /** Gives a copied file another name; false when it is not copied yet. */
  #linkedTo(key: string, target: RawPath): boolean {
    const copy = this.#linked.get(key)
    if (copy === undefined) return false
    try {
      linkSync(toSystem(copy), toSystem(target))
      this.#files += 1
      return true
    } catch (error) {
      throwIfExhausted(error)
      return false // its path is too long, or it has too many names
    }
  }

  /** Writes a file: all the bytes that it had, or fewer when it was cut meanwhile. */
  #content(
    source: number,
    stats: Stats,
    target: RawPath,
    place: Place,
    path: RawPath,
  ): 'whole' | 'cut' | 'left out' {
    const { size, dev } = stats
    const isLarge = size > SMALL && !this.#holdsPaths(place, path, size)
    const isUnseen = isLarge && place.zone.isRepository && mayLeadOut(path)
    if (isUnseen && this.#job.sealed === true) return 'left out'
    const found = isLarge ? null : this.#read(source, size)
    const isCut = found !== null && found.length < size
    const content = found === null || isCut ? found : this.#redirected(found, place, path)
    if (content === null && found !== null) return 'left out'
    const isExact = content === found
    const mode = stats.mode & 0o777
    const out = openSync(toSystem(target), NEW_FILE, mode)
    try {
      const isShared = isExact && !isCut && size > 0 && this.#share(source, dev, out)
      const isWhole = isShared || (content === null
        ? this.#large(source, out, stats)
        : writeAll(out, content, 0) && !isCut)
      if ((mode & this.#umask) !== 0) fchmodSync(out, mode)
      // What was redirected is new: bytecode that was compiled from it is not valid any more.
      if (isExact) futimesSync(out, this.#accessTime(stats), stats.mtimeMs / 1000)
      else if (this.#job.unread === true) futimesSync(out, 0, fstatSync(out).mtimeMs / 1000)
      return isWhole ? 'whole' : 'cut'
    } finally {
      closeSync(out)
    }
  }

  /** In seconds. */
  #accessTime({ atimeMs }: Stats): number {
    return this.#job.unread === true ? 0 : atimeMs / 1000
  }

  /** Is it a file in which paths are redirected although it is large? */
  #holdsPaths({ real, zone }: Place, path: RawPath, size: number): boolean {
    const file = `${real}/${nameOf(path)}`
    const isOne = zone.isRepository
      ? mayLeadOut(file)
      : isPointer(file) || isState(file, zone.isDependency)
    if (isOne && size > MAX_STATE_BYTES) this.#notes.add('unclear', path)
    return isOne && size <= MAX_STATE_BYTES
  }

  /** What the copy of a file holds; null when it is left out. */
  #redirected(content: Buffer, { real, zone }: Place, path: RawPath): Buffer | null {
    const file = `${real}/${nameOf(path)}`
    if (this.#job.sealed === true && leadsElsewhere(file, content, this.#copies[0]!.from)) {
      return isPointer(file) ? Buffer.from(NO_REPOSITORY) : null
    }
    if (zone.isRepository || isPointer(file)) {
      const copied = this.#repositories.file(file, content)
      if (copied === undefined) return content
      if (copied.ledOut) this.#notes.add(isPointer(file) ? 'repository' : 'setting', path)
      return copied.content
    }
    if (isState(file, zone.isDependency)) {
      const replaced = this.#paths.replaced(content)
      if (this.#paths.isCut) this.#notes.add('unclear', path)
      if (replaced !== 'binary') return replaced ?? content
      this.#notes.add('binary', path)
    } else if (!path.endsWith('.pyc') && this.#paths.isIn(content)) this.#notes.add('mention', path)
    return content
  }

  /** Shares the blocks of a file with an empty one; false when the file system cannot. */
  #share(source: number, device: number, out: number): boolean {
    if (!HAS_PROC || this.#canShare.get(device) === false) return false
    try {
      const [from, to] = [`/proc/self/fd/${source}`, `/proc/self/fd/${out}`]
      copyFileSync(from, to, constants.COPYFILE_FICLONE_FORCE)
      this.#canShare.set(device, true)
      return true
    } catch (error) {
      if (!CANNOT_SHARE.has(codeOf(error) ?? '')) throw error
      // Some can share most files, but not each one.
      if (!this.#canShare.has(device)) this.#canShare.set(device, false)
      return false
    }
  }

  /** A file from its beginning, at most `size` bytes of it; valid until the next one is read. */
  #read(file: number, size: number): Buffer {
    const buffer = size > SMALL ? Buffer.allocUnsafeSlow(size) : this.#buffer
    let length = 0
    for (let count = -1; count !== 0 && length < size; length += count) {
      count = readSync(file, buffer, length, size - length, length)
    }
    return buffer.subarray(0, length)
  }

  /** Copies as many bytes as the file had; false when there are fewer now. */
  #large(source: number, target: number, { size, blocks }: Stats): boolean {
    const isSparse = blocks * 512 < size
    const step = isSparse ? HOLE.length : SMALL
    for (let done = 0; done < size; ) {
      if (this.#isAborted()) throw new WorkStopped('aborted')
      const length = readSync(source, this.#buffer, 0, Math.min(step, size - done), done)
      if (length === 0) return false
      const part = this.#buffer.subarray(0, length)
      if (!isSparse || !part.equals(HOLE.subarray(0, length))) writeAll(target, part, done)
      done += length
    }
    if (isSparse) ftruncateSync(target, size)
    return true
  }

  #count(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes > this.#job.maxBytes) throw new WorkStopped('too large')
  }

  /** Looks at the original; null, with a note, when that cannot be done. */
  #unlessMissed<T>(path: RawPath, look: () => T): T | null {
    try {
      return look()
    } catch (error) {
      this.#missed(error, path)
      return null
    }
  }

  /**
   * Notes what could not be read; what does not exist any more is no part of the copy.
   *
   * @throws {@link KindChanged}; any other error
   */
  #missed(error: unknown, path: RawPath): void {
    const code = codeOf(error) ?? ''
    if (UNREADABLE.has(code)) this.#notes.add('unreadable', path)
    else if (OTHER_KIND.has(code)) throw new KindChanged()
    else if (code !== 'ENOENT') throw asOriginals(error)
  }
}

/** Looks at the original, see rule 6. */
function ofOriginal<T>(look: () => T): T {
  try {
    return look()
  } catch (error) {
    throw asOriginals(error)
  }
}

function asOriginals(error: unknown): unknown {
  const isSystems = error instanceof Error && 'syscall' in error
  return !isSystems || lacksResources(error) ? error : new Error(error.message)
}

type Kind = ListedEntry['kind']

/** Opens a folder by its real path: one that was put elsewhere meanwhile is not what was meant. */
function openedAt(path: RawPath): WalkedFolder {
  let folder: WalkedFolder | undefined
  try {
    folder = WalkedFolder.open(path)
    const found = HAS_PROC
      ? readlinkSync(folder.at, 'latin1')
      : realpathSync(toSystem(path), 'latin1')
    if (found === path) return folder
  } catch (error) {
    if (!OTHER_KIND.has(codeOf(error) ?? '') && codeOf(error) !== 'ENOENT') throw error
  }
  folder?.[Symbol.dispose]()
  const message = 'it was moved or deleted, or replaced by a link'
  throw Object.assign(new Error(message), { code: 'ERR_AGENT_WORKSPACE_LOST' })
}

function zoneOf({ zone, relative }: Place, names: readonly string[]): Zone {
  if (isRepository(names) || isRepositoryName(relative)) {
    return { ...zone, isRepository: true, isTop: isTopOfGit(relative, names) }
  }
  const isEnvironment = names.includes('pyvenv.cfg') || names.includes('conda-meta')
  const isDependency = zone.isDependency || isEnvironment
  return { ...zone, isDependency, isTop: isTopOfGit(relative, names) }
}

function nameOf(path: RawPath): RawPath {
  return path.slice(path.lastIndexOf('/') + 1)
}

function isRepositoryName(path: RawPath): boolean {
  return /(^|\/)\.(git|hg|jj)$/.test(path)
}

/** Programs and libraries of the system, and the interpreter of a virtual environment. */
function isOfSystem(end: RawPath, name: RawPath, { isDependency }: Zone): boolean {
  return /^\/(usr|bin|lib\w*|opt|nix)\//.test(end) || (isDependency && name.startsWith('python'))
}

/** Can a file not have changed between two looks? */
function isSame(a: Stats, b: Stats): boolean {
  return a.size === b.size && a.mtimeMs === b.mtimeMs && a.ctimeMs === b.ctimeMs
}

function writeAll(file: number, content: Buffer, position: number): true {
  for (let done = 0; done < content.length; ) {
    done += writeSync(file, content, done, content.length - done, position + done)
  }
  return true
}

function unlinkIfThere(path: RawPath): void {
  try {
    unlinkSync(toSystem(path))
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
  }
}

function inodeOf(file: number): string {
  const { dev, ino } = fstatSync(file, { bigint: true })
  return `${dev} ${ino}`
}
