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
 *
 * @module
 */
import {
  closeSync, constants, copyFileSync, fchmodSync, fstatSync, ftruncateSync, futimesSync,
  linkSync, lstatSync, lutimesSync, mkdirSync, openSync, readdirSync, readlinkSync, symlinkSync,
  writeSync, type Dirent, type Stats,
} from 'node:fs'
import { throwIfExhausted } from '../exhaustion.js'
import type { CopyJob, CopyResult } from './copy-job.js'
import { copiedLink, type CopiedFolder } from './copied-links.js'
import { CopiedPaths, isState, MAX_STATE_BYTES } from './copied-paths.js'
import { CopiedRepositories, isPointer, mayLeadOut, NO_REPOSITORY } from './copied-git.js'
import {
  FILE_FLAGS, finished, FOLDER_FLAGS, GONE, inodeOf, openedAt, read, readAt, ReadError, readSmall,
  unlinkIfThere, writeAll,
} from './copy-io.js'
import { CopyNotes } from './copy-notes.js'
import { canBeMounted } from './mountable.js'
import { isRepository } from './git-names.js'
import { codeOf, HAS_PROC } from './paths.js'
import { rawPath, toSystem, toText, type RawPath } from './raw-paths.js'

/** Thrown when the copy would exceed `maxBytes`. */
export class TooLarge extends Error {}
/** Thrown when the copy was aborted. */
export class Aborted extends Error {}

/** What the entries of a folder belong to. */
interface Zone {
  readonly isDependency: boolean
  readonly isRepository: boolean
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
  readonly depth: number
}

/** What an entry counts besides its content: name and attributes take up space as well. */
const ENTRY_BYTES = 256
const MAX_DEPTH = 250
/** Files up to this size are read at once, and looked through for paths; see also `#holdsPaths`. */
const SMALL = 256 * 1024
const CHUNK = 1024 * 1024
/** Bytes of zeros that are not written. */
const HOLE = 64 * 1024
const ATTEMPTS = 3
const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL
/** Folders whose content is installed, with links and paths that lead to it. */
const DEPENDENCIES: ReadonlySet<string> = new Set(['node_modules', '.venv', 'venv'])
/** Codes of files that cannot be read; see also `GONE`. */
const UNREADABLE: ReadonlySet<string> = new Set(['EACCES', 'EPERM', 'EIO', 'ESTALE'])

/** See the comment of this file. */
export class TreeCopy {
  readonly #job: CopyJob
  readonly #isAborted: () => boolean
  readonly #copies: readonly CopiedFolder[]
  readonly #closed: ReadonlySet<RawPath>
  readonly #paths: CopiedPaths
  readonly #repositories: CopiedRepositories
  readonly #notes = new CopyNotes()
  readonly #readOnly: string[] = []
  readonly #buffer = Buffer.allocUnsafeSlow(CHUNK)
  /** Copies of files with several names, by device and inode. */
  readonly #linked: Map<string, RawPath> = new Map()
  /** Can blocks be shared, by the device of the original? */
  readonly #canShare: Map<number, boolean> = new Map()
  #files = 0
  #bytes = 0

  constructor(job: CopyJob, isAborted: () => boolean) {
    this.#job = job
    this.#isAborted = isAborted
    this.#copies = job.copies.map(({ from, to }) => ({ from: rawPath(from), to: rawPath(to) }))
    this.#closed = new Set([job.to, ...job.closed].map(rawPath))
    this.#paths = new CopiedPaths(this.#copies)
    this.#repositories = new CopiedRepositories(this.#copies, this.#paths)
  }

  run(): CopyResult {
    const [from, to] = [rawPath(this.#job.from), rawPath(this.#job.to)]
    const name = from.slice(from.lastIndexOf('/') + 1)
    const zone = { isDependency: DEPENDENCIES.has(name), isRepository: false }
    const place = { real: from, relative: '', source: from, target: to, zone, depth: 0 }
    this.#folder(openedAt(from), place)
    return {
      files: this.#files,
      bytes: this.#bytes,
      readOnly: this.#readOnly,
      notes: this.#notes.sentences(),
    }
  }

  /** Copies an open folder, and closes it. `source` and `target` of `place` are its own paths. */
  #folder(source: number, place: Place): void {
    let target: number | undefined
    try {
      const stats = fstatSync(source)
      mkdirSync(toSystem(place.target), 0o700)
      target = openSync(toSystem(place.target), FOLDER_FLAGS)
      const entered = {
        ...place,
        source: HAS_PROC ? `/proc/self/fd/${source}` : place.source,
        target: HAS_PROC ? `/proc/self/fd/${target}` : place.target,
      }
      this.#entries(entered)
      fchmodSync(target, stats.mode & 0o1777)
      futimesSync(target, stats.atimeMs / 1000, stats.mtimeMs / 1000)
    } finally {
      if (target !== undefined) closeSync(target)
      closeSync(source)
    }
  }

  #entries(place: Place): void {
    let entries: Dirent[]
    try {
      const options = { encoding: 'latin1', withFileTypes: true } as const
      entries = readdirSync(toSystem(`${place.source}/.`), options)
    } catch (error) {
      if (!this.#missed(error, place.relative)) this.#notes.add('changing', place.relative)
      return
    }
    const names = entries.map(({ name }) => name)
    const zone = this.#zoneOf(place, names)
    // What refers to objects is copied before them.
    if (zone.isRepository) entries.sort((a, b) => isObjects(a) - isObjects(b))
    for (const entry of entries) this.#entry({ ...place, zone }, entry.name, entry)
  }

  #zoneOf({ zone, relative }: Place, names: readonly string[]): Zone {
    if (isRepository(names) || isRepositoryName(relative)) return { ...zone, isRepository: true }
    if (names.includes('pyvenv.cfg') || names.includes('conda-meta')) {
      return { ...zone, isDependency: true }
    }
    return zone
  }

  #entry(place: Place, name: RawPath, type: Kind, attempt = 1): void {
    if (this.#isAborted()) throw new Aborted()
    const { zone, real, relative } = place
    const path = relative === '' ? name : `${relative}/${name}`
    if (this.#closed.has(`${real}/${name}`)) return
    if (zone.isRepository && name.endsWith('.lock')) return
    this.#count(ENTRY_BYTES)
    if (this.#as(type, place, name, path)) return
    if (attempt === ATTEMPTS) return this.#notes.add('changing', path)
    const now = lstatSync(toSystem(`${place.source}/${name}`), { throwIfNoEntry: false })
    if (now !== undefined) this.#entry(place, name, now, attempt + 1)
  }

  /** False when it is something else by now, or its file system does not tell what it is. */
  #as(type: Kind, place: Place, name: RawPath, path: RawPath): boolean {
    const { zone, real, depth } = place
    if (type.isDirectory()) {
      const inner: Place = {
        real: `${real}/${name}`,
        relative: path,
        source: `${place.source}/${name}`,
        target: `${place.target}/${name}`,
        zone: DEPENDENCIES.has(name) ? { ...zone, isDependency: true } : zone,
        depth: depth + 1,
      }
      return this.#subfolder(inner, name)
    }
    if (type.isSymbolicLink()) return this.#link(place, name, path)
    if (type.isFile()) return this.#file(place, name, path)
    const isSpecial =
      type.isSocket() || type.isFIFO() || type.isCharacterDevice() || type.isBlockDevice()
    if (isSpecial) this.#notes.add('special', path)
    return isSpecial
  }

  #subfolder(inner: Place, name: RawPath): boolean {
    if (inner.depth > MAX_DEPTH) {
      this.#notes.add('deep', inner.relative)
      return true
    }
    let source: number
    try {
      source = openSync(toSystem(inner.source), FOLDER_FLAGS)
    } catch (error) {
      return this.#missed(error, inner.relative)
    }
    if (inner.zone.isRepository && this.#isForeignWorktree(inner)) {
      closeSync(source)
      this.#notes.add('worktree', inner.relative)
    } else if (this.#job.mounts && name === 'node_modules' && this.#isMounted(inner)) {
      closeSync(source)
      mkdirSync(toSystem(inner.target), 0o755)
      this.#readOnly.push(toText(inner.relative)!)
      this.#notes.add('readOnly', inner.relative)
    } else this.#folder(source, inner)
    return true
  }

  #isMounted({ real, relative }: Place): boolean {
    if (toText(relative) === undefined) return false
    return canBeMounted(real, this.#copies, this.#paths, this.#closed, (file) => this.#shares(file))
  }

  /** Is it the administration of a linked working tree that is outside? */
  #isForeignWorktree({ real, source }: Place): boolean {
    if (!/(^|\/)worktrees\/[^/]+$/.test(real)) return false
    const gitdir = readSmall(`${source}/gitdir`)
    return gitdir !== null && this.#repositories.leadsOut(real, gitdir)
  }

  #link(place: Place, name: RawPath, path: RawPath): boolean {
    const source = `${place.source}/${name}`
    let text: RawPath
    let stats: Stats
    try {
      text = readlinkSync(toSystem(source), 'latin1')
      stats = lstatSync(toSystem(source))
    } catch (error) {
      return this.#missed(error, path)
    }
    const { target, kind, end } = copiedLink(place.real, text, this.#copies)
    if (kind === 'outside' && (place.zone.isRepository || isRepositoryName(name))) {
      this.#notes.add(place.zone.isRepository ? 'gitLink' : 'repository', path)
      if (name === '.git') this.#noRepository(`${place.target}/${name}`)
      return true
    }
    if (kind === 'outside' && !isOfSystem(end, name, place.zone)) this.#notes.add('outside', path)
    const copy = toSystem(`${place.target}/${name}`)
    symlinkSync(toSystem(target), copy)
    lutimesSync(copy, stats.atimeMs / 1000, stats.mtimeMs / 1000)
    this.#files += 1
    return true
  }

  #noRepository(target: RawPath): void {
    const file = openSync(toSystem(target), NEW_FILE, 0o644)
    try {
      writeSync(file, NO_REPOSITORY)
    } finally {
      closeSync(file)
    }
  }

  #file(place: Place, name: RawPath, path: RawPath): boolean {
    let source: number
    try {
      source = openSync(toSystem(`${place.source}/${name}`), FILE_FLAGS)
    } catch (error) {
      return this.#missed(error, path)
    }
    try {
      if (fstatSync(source).isDirectory()) return false
      this.#opened(source, place, name, path)
      return true
    } finally {
      closeSync(source)
    }
  }

  #opened(source: number, place: Place, name: RawPath, path: RawPath): void {
    let before = fstatSync(source)
    if (!before.isFile()) {
      this.#notes.add('special', path)
      return
    }
    const target = `${place.target}/${name}`
    const key = before.nlink > 1 ? inodeOf(source) : ''
    if (key !== '' && this.#linkedTo(key, target)) return
    this.#count(before.size)
    for (let attempt = 1; ; attempt++) {
      let outcome: 'copied' | 'changed' | 'left out'
      try {
        outcome = this.#content(source, before, place, name, path)
      } catch (error) {
        if (!(error instanceof ReadError)) throw error
        unlinkIfThere(target)
        if (!this.#missed(error.cause, path)) this.#notes.add('unreadable', path)
        return
      }
      if (outcome === 'left out') return
      const after = fstatSync(source)
      const isSame = outcome === 'copied' && after.size === before.size &&
        after.mtimeMs === before.mtimeMs && after.ctimeMs === before.ctimeMs
      if (isSame) break
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
    if (key !== '') this.#linked.set(key, `${rawPath(this.#job.to)}/${path}`)
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

  #content(
    source: number,
    stats: Stats,
    place: Place,
    name: RawPath,
    path: RawPath,
  ): 'copied' | 'changed' | 'left out' {
    const target = `${place.target}/${name}`
    const shared = stats.size > 0 && this.#shares(source, target)
    const isSmall = stats.size <= SMALL
    const holdsPaths = !isSmall && this.#holdsPaths(place, name)
    if (!isSmall && (!holdsPaths || stats.size > MAX_STATE_BYTES)) {
      if (holdsPaths) this.#notes.add('unclear', path)
      const out = openSync(toSystem(target), shared ? constants.O_WRONLY : NEW_FILE, 0o600)
      return finished(out, stats, true, () => shared || this.#large(source, out, stats))
    }
    const buffer = isSmall ? this.#buffer : Buffer.allocUnsafeSlow(stats.size + 1)
    const content = read(source, buffer.subarray(0, Math.max(SMALL, stats.size) + 1))
    if (content.length !== stats.size) {
      if (shared) unlinkIfThere(target)
      // Another attempt reads what it is now.
      const out = openSync(toSystem(target), NEW_FILE, 0o600)
      return finished(out, stats, true, () => {
        writeAll(out, content)
        return false
      })
    }
    const changed = this.#redirected(content, place, path)
    if (changed === null) {
      if (shared) unlinkIfThere(target)
      return 'left out'
    }
    const flags = shared ? constants.O_WRONLY | constants.O_TRUNC : NEW_FILE
    if (shared && changed === content) {
      const out = openSync(toSystem(target), constants.O_WRONLY)
      return finished(out, stats, true, () => true)
    }
    const out = openSync(toSystem(target), flags, 0o600)
    // What was redirected is new: bytecode that was compiled from it is not valid any more.
    return finished(out, stats, changed === content, () => {
      writeAll(out, changed)
      return true
    })
  }

  /** Is it a file in which paths are redirected, whatever its size? */
  #holdsPaths({ real, zone }: Place, name: RawPath): boolean {
    const file = `${real}/${name}`
    if (zone.isRepository) return mayLeadOut(file)
    return isPointer(file) || isState(file, zone.isDependency)
  }

  /** What the copy of a file holds; null when it is left out. */
  #redirected(content: Buffer, { real, zone }: Place, path: RawPath): Buffer | null {
    const file = `${real}/${path.slice(path.lastIndexOf('/') + 1)}`
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

  /** Shares the blocks of an open file with a new one; false when the file system cannot. */
  #shares(source: number, target?: RawPath): boolean {
    if (!HAS_PROC) return false
    const device = fstatSync(source).dev
    if (this.#canShare.get(device) === false) return false
    if (target === undefined && this.#canShare.has(device)) return true
    const path = target ?? `${rawPath(this.#job.to)}/.shares-blocks`
    const mode = constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE_FORCE
    try {
      copyFileSync(`/proc/self/fd/${source}`, toSystem(path), mode)
      this.#canShare.set(device, true)
      if (target === undefined) unlinkIfThere(path)
      return true
    } catch (error) {
      unlinkIfThere(path)
      if (!CANNOT_SHARE.has(codeOf(error) ?? '')) throw error
      // Some can share most files, but not each one.
      if (!this.#canShare.has(device)) this.#canShare.set(device, false)
      return false
    }
  }

  /** Copies as many bytes as the file had; false when there are fewer now. */
  #large(source: number, target: number, { size, blocks }: Stats): boolean {
    const isSparse = blocks * 512 < size
    const step = isSparse ? HOLE : CHUNK
    let done = 0
    while (done < size) {
      if (this.#isAborted()) throw new Aborted()
      const length = readAt(source, this.#buffer, Math.min(step, size - done), done)
      if (length === 0) return false
      const part = this.#buffer.subarray(0, length)
      if (!isSparse || !part.equals(ZEROS.subarray(0, length))) writeAll(target, part, done)
      done += length
    }
    if (isSparse) ftruncateSync(target, size)
    return true
  }

  #count(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes > this.#job.maxBytes) throw new TooLarge()
  }

  /**
   * Notes what could not be read; what does not exist any more is no part of the copy. False for
   * what is something else by now.
   */
  #missed(error: unknown, path: RawPath): boolean {
    const code = codeOf(error) ?? ''
    if (UNREADABLE.has(code)) this.#notes.add('unreadable', path)
    else if (!GONE.has(code)) throw error
    return UNREADABLE.has(code) || code === 'ENOENT'
  }
}

type Kind = Pick<
  Dirent,
  | 'isDirectory'
  | 'isFile'
  | 'isSymbolicLink'
  | 'isSocket'
  | 'isFIFO'
  | 'isCharacterDevice'
  | 'isBlockDevice'
>

const ZEROS = Buffer.alloc(HOLE)
/** What `FICLONE` fails with where blocks cannot be shared. */
const CANNOT_SHARE: ReadonlySet<string> = new Set([
  'ENOTSUP', 'EOPNOTSUPP', 'EXDEV', 'EINVAL', 'ENOTTY', 'ENOSYS', 'EPERM',
])

function isObjects(entry: Dirent): number {
  return entry.name === 'objects' ? 1 : 0
}

function isRepositoryName(path: RawPath): boolean {
  return /(^|\/)\.(git|hg|jj)$/.test(path)
}

/** Programs and libraries of the system, and the interpreter of a virtual environment. */
function isOfSystem(end: RawPath, name: RawPath, { isDependency }: Zone): boolean {
  return /^\/(usr|bin|lib\w*|opt|nix)\//.test(end) || (isDependency && name.startsWith('python'))
}
