/**
 * Looking into folders: whatever lists, compares, copies or removes one enters it here. All of it
 * is synchronous, since a small file takes ten times as long through the thread pool, by callers
 * that pause in between or have a thread of their own.
 *
 * 1. Folders are entered through descriptors (`/proc/self/fd/N/name`), so that neither a rename nor
 *    a link leads outside (see `paths.ts`).
 * 2. Links are never followed, and nothing but regular files is opened.
 * 3. Names are bytes, one character each: they need not be UTF-8.
 * 4. Depth and entries are bounded, so that at most 250 folders are open at a time.
 *
 * @module
 */
import {
  closeSync, constants, fstatSync, lstatSync, opendirSync, openSync, readdirSync, readlinkSync,
  readSync, realpathSync, utimesSync, type Dirent, type Stats,
} from 'node:fs'
import { throwIfExhausted } from '../exhaustion.js'
import { codeOf, failure, FOLDER_FLAGS, HAS_PROC } from './paths.js'
import { exactPath, exactText, toSystem, type RawPath } from './raw-paths.js'

/** Levels of folders that are entered, unless the caller sets another limit. */
const MAX_DEPTH = 250
/** Links are not followed, and opening a FIFO or terminal neither blocks nor takes it over. */
export const READ_FLAGS: number =
  constants.O_RDONLY |
  (constants.O_NOFOLLOW ?? 0) |
  (constants.O_NONBLOCK ?? 0) |
  (constants.O_NOCTTY ?? 0)
/** Entries that are read from the disk at once. */
const BATCH = 256
/** Attempts at reading a file that changes meanwhile. */
const ATTEMPTS = 3
/** What these codes say is not permitted or broken; any other means that it is not there. */
const GONE: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO', 'ESTALE'])

/** Thrown when work on a folder is not finished. */
export class WorkStopped extends Error {
  readonly why: 'aborted' | 'too large'

  constructor(why: 'aborted' | 'too large') {
    super(why)
    this.why = why
  }
}

export interface WalkLimits {
  /** Levels below the top that are entered. @defaultValue 250 */
  readonly depth?: number
  /** Entries, beyond which {@link WorkStopped} is thrown. @defaultValue no limit */
  readonly entries?: number
  /** Names that are read from one folder; the rest of it is skipped. @defaultValue no limit */
  readonly names?: number
  /** Sets the access time of a folder back after listing it. @defaultValue false */
  readonly keepsAccessTimes?: boolean
  /** Called with the entries of each folder before they are walked; may alter them. */
  readonly listed?: (entries: ListedEntry[]) => void
  /** Asked at each entry; {@link WorkStopped} is thrown once it is true. */
  readonly isAborted?: () => boolean
}

/** One name in a folder; what is neither file, folder nor link is `other`. */
export interface ListedEntry {
  readonly name: RawPath
  readonly kind: 'file' | 'folder' | 'link' | 'other'
}

/** Content of a file, with its stats from before it was read. */
export interface ReadFile {
  readonly content: Uint8Array
  readonly stats: Stats
  /**
   * False for a file that changed at each attempt: its content was read in part before a change.
   */
  readonly isWhole: boolean
}

/** A folder that is held open; its owner closes it. */
export class WalkedFolder implements Disposable {
  /** The path by which it and its entries are reached while it is open. */
  readonly at: RawPath
  readonly #fd: number | null

  /** @param fd null for a folder that the path is known to lead to as long as it is used */
  constructor(fd: number | null, path: RawPath) {
    this.#fd = fd
    this.at = HAS_PROC && fd !== null ? `/proc/self/fd/${fd}` : path
  }

  /**
   * Opens the folder at a path; its last name must not be a link.
   *
   * @throws the error of the system
   */
  static open(path: RawPath): WalkedFolder {
    return new WalkedFolder(openSync(toSystem(path), FOLDER_FLAGS), path)
  }

  get ownStats(): Stats {
    return this.#fd === null ? lstatSync(toSystem(`${this.at}/.`)) : fstatSync(this.#fd)
  }

  /**
   * At most `limit` entries, by name; `more` when there are others.
   *
   * @throws the error of the system
   */
  list(limit: number = Infinity): { readonly entries: ListedEntry[]; readonly more: boolean } {
    const path = toSystem(`${this.at}/.`)
    // Every byte is a character, so that names which are not UTF-8 arrive whole.
    const found = limit === Infinity
      ? readdirSync(path, { encoding: 'latin1', withFileTypes: true })
      : firstEntries(path, limit + 1)
    const entries = found.map((entry) => ({ name: entry.name, kind: kindOf(entry) }))
    const more = entries.length > limit
    if (more) entries.pop()
    return { entries: entries.sort((a, b) => (a.name < b.name ? -1 : 1)), more }
  }

  /** The stats of an entry itself, not of what a link leads to; null when it is gone. */
  stat(name: RawPath): Stats | null {
    return unlessGone(() => lstatSync(this.#entry(name), { throwIfNoEntry: false })) ?? null
  }

  /** The target of a link; null when it is none any more. */
  target(name: RawPath): Buffer | null {
    return unlessGone(() => readlinkSync(this.#entry(name), 'buffer'))
  }

  /**
   * Reads a file, again if it changes meanwhile.
   *
   * @param room gives the memory for so many bytes
   * @returns null when it is no file any more, `large` when it has more than `maxBytes`
   */
  read(
    name: RawPath,
    maxBytes: number,
    room: (bytes: number) => Uint8Array,
  ): ReadFile | 'large' | 'unreadable' | null {
    let fd: number | undefined
    try {
      fd = openSync(this.#entry(name), READ_FLAGS)
      return readWhole(fd, maxBytes, room)
    } catch (error) {
      throwIfExhausted(error)
      return GONE.has(codeOf(error) ?? '') ? null : 'unreadable'
    } finally {
      if (fd !== undefined) closeSync(fd)
    }
  }

  #entry(name: RawPath): string | Buffer {
    return toSystem(`${this.at}/${name}`)
  }

  [Symbol.dispose](): void {
    if (this.#fd !== null) closeSync(this.#fd)
  }
}

/** Not `readdir`, which would hold all entries of a huge folder in memory. */
function firstEntries(path: string | Buffer, limit: number): Dirent[] {
  const entries: Dirent[] = []
  const folder = opendirSync(path, { encoding: 'latin1', bufferSize: BATCH })
  try {
    for (let entry = folder.readSync(); entry !== null; entry = folder.readSync()) {
      entries.push(entry)
      if (entries.length === limit) break
    }
  } finally {
    folder.closeSync()
  }
  return entries
}

/** Calls when a folder is entered and left. */
export interface Enter {
  /** Called before the folder is listed. */
  readonly opened?: (folder: WalkedFolder) => void
  /** Called after its last entry, while its path can still be used. */
  readonly left?: () => void
}

/** A folder that is being walked. */
interface Frame {
  readonly folder: WalkedFolder
  readonly entries: ListedEntry[]
  readonly path: RawPath
  readonly left: (() => void) | undefined
  next: number
}

/** An entry that a walk has come to; what reaches it is valid until the next one. */
export class Walked implements ListedEntry {
  readonly name: RawPath
  readonly kind: ListedEntry['kind']
  /** Below the folder at the top. */
  readonly path: RawPath
  /** Folders above it, the top not included. */
  readonly depth: number
  readonly folder: WalkedFolder
  /** Set by {@link enter}, for the walk. */
  entered: Frame | null = null
  readonly #limits: WalkLimits

  constructor({ name, kind }: ListedEntry, frame: Frame, depth: number, limits: WalkLimits) {
    this.name = name
    this.kind = kind
    this.path = frame.path === '' ? name : `${frame.path}/${name}`
    this.depth = depth
    this.folder = frame.folder
    this.#limits = limits
  }

  /** The path by which it is reached. */
  get at(): RawPath {
    return `${this.folder.at}/${this.name}`
  }

  /** True for an entry on the last level that is walked. */
  get isDeepest(): boolean {
    return this.depth >= (this.#limits.depth ?? MAX_DEPTH)
  }

  /** Its own stats; null when it is gone. */
  stat(): Stats | null {
    return this.folder.stat(this.name)
  }

  /**
   * Has the walk go on in this folder.
   *
   * @throws the error of the system when it cannot be opened or listed
   */
  enter({ opened, left }: Enter = {}): WalkedFolder {
    const folder = WalkedFolder.open(this.at)
    try {
      opened?.(folder)
      this.entered = frameOf(folder, this.path, this.#limits, left)
      return folder
    } catch (error) {
      folder[Symbol.dispose]()
      throw error
    }
  }

  /** The same; false for a folder that is too deep, or that cannot be entered. */
  tryEnter(): boolean {
    return !this.isDeepest && unlessGone(() => this.enter()) !== null
  }
}

/** Lists a folder that is to be walked. */
function frameOf(
  folder: WalkedFolder,
  path: RawPath,
  { keepsAccessTimes, listed, names }: WalkLimits,
  left?: () => void,
): Frame {
  const times = keepsAccessTimes === true ? folder.ownStats : null
  const { entries } = folder.list(names)
  // Listing is reading as well.
  if (times !== null) setTimes(folder, times)
  listed?.(entries)
  return { folder, entries, path, left, next: 0 }
}

function setTimes({ at }: WalkedFolder, { atimeMs, mtimeMs }: Stats): void {
  unlessGone(() => utimesSync(toSystem(`${at}/.`), atimeMs / 1000, mtimeMs / 1000))
}

/**
 * Walks a folder, which the caller closes: entries come by name, those of a folder that is entered
 * behind the folder itself. The caller decides at each folder whether to {@link Walked.enter} it.
 *
 * @throws the error of the system when the folder itself cannot be listed; the walk throws
 * {@link WorkStopped}
 */
export function walkFolder(top: WalkedFolder, limits: WalkLimits = {}): Generator<Walked, void> {
  return walk([frameOf(top, '', limits)], limits)
}

function* walk(frames: Frame[], limits: WalkLimits): Generator<Walked, void> {
  const { entries: most = Infinity, isAborted } = limits
  let [count, current]: [number, Walked | null] = [0, null]
  try {
    for (let frame = frames.at(-1); frame !== undefined; frame = frames.at(-1)) {
      const entry = frame.entries[frame.next++]
      if (entry === undefined) {
        frames.pop()
        if (frames.length > 0) frame.folder[Symbol.dispose]()
        frame.left?.()
        continue
      }
      count += 1
      if (count > most) throw new WorkStopped('too large')
      if (isAborted?.() === true) throw new WorkStopped('aborted')
      current = new Walked(entry, frame, frames.length - 1, limits)
      yield current
      if (current.entered !== null) frames.push(current.entered)
      current = null
    }
  } finally {
    if (current?.entered != null) frames.push(current.entered)
    for (const { folder } of frames.slice(1)) folder[Symbol.dispose]()
  }
}

/** The folder at the top, held open until it is disposed of, and the folders below it by path. */
export class WalkedRoot implements Disposable {
  readonly #fd: number
  readonly #path: RawPath
  #real: RawPath

  /** @throws {@link WorkspaceError} when it cannot be entered. */
  constructor(folder: string) {
    try {
      // The last name of `/proc/self/fd/N` is a link, so one more follows.
      this.#fd = openSync(`${folder}/.`, FOLDER_FLAGS)
    } catch (error) {
      throwIfExhausted(error)
      throw failure(`${folder} cannot be entered`, error)
    }
    this.#path = HAS_PROC ? `/proc/self/fd/${this.#fd}` : exactPath(realpathSync(folder))
    this.#real = this.#locate()
  }

  /** Its real path now, as text. */
  get real(): string {
    return exactText(this.#real)
  }

  /** False when the folder itself was deleted while it was looked at. */
  get exists(): boolean {
    return fstatSync(this.#fd).nlink > 0
  }

  /**
   * Opens a folder by its relative path, if it lies where the path says. Null for what is gone or
   * something else by now, `unreadable` for what is not permitted. Only faults of the machine are
   * thrown.
   */
  open(path: string): WalkedFolder | 'unreadable' | null {
    if (path === '') return new WalkedFolder(null, this.#path)
    let fd: number | undefined
    try {
      const raw = exactPath(path)
      const at = `${this.#path}/${raw}`
      fd = openSync(toSystem(at), FOLDER_FLAGS)
      const folder = new WalkedFolder(fd, at)
      if (!this.#isAt(fd, at, raw)) return null
      fd = undefined
      return folder
    } catch (error) {
      throwIfExhausted(error)
      return GONE.has(codeOf(error) ?? '') ? null : 'unreadable'
    } finally {
      if (fd !== undefined) closeSync(fd)
    }
  }

  #isAt(fd: number, at: RawPath, path: RawPath): boolean {
    if (!HAS_PROC) return realpathSync(toSystem(at), 'latin1') === at
    const real = readlinkSync(`/proc/self/fd/${fd}`, 'latin1')
    if (real === `${this.#real}/${path}`) return true
    // The folder at the top may have been renamed, which changes nothing in it.
    this.#real = this.#locate()
    return real === `${this.#real}/${path}`
  }

  #locate(): RawPath {
    const real = HAS_PROC ? readlinkSync(this.#path, 'latin1') : this.#path
    return real === '/' ? '' : real
  }

  [Symbol.dispose](): void {
    closeSync(this.#fd)
  }
}

/** True when nothing says that a file or link has changed between two looks. */
export function isSameStats(a: Stats, b: Stats): boolean {
  return (
    a.ctimeMs === b.ctimeMs &&
    a.mtimeMs === b.mtimeMs &&
    a.size === b.size &&
    a.ino === b.ino &&
    a.mode === b.mode
  )
}

/** Null for what cannot be looked at; only faults of the machine are thrown. */
export function unlessGone<T>(look: () => T): T | null {
  try {
    return look()
  } catch (error) {
    throwIfExhausted(error)
    return null
  }
}

function readWhole(
  fd: number,
  maxBytes: number,
  room: (bytes: number) => Uint8Array,
): ReadFile | 'large' | null {
  let stats = fstatSync(fd)
  for (let attempt = 1; ; attempt++) {
    if (!stats.isFile()) return null
    if (stats.size > maxBytes) return 'large'
    // One byte more, to see whether it grew.
    const buffer = room(stats.size + 1)
    let length = 0
    for (let bytes = -1; bytes !== 0 && length < buffer.length; length += bytes) {
      bytes = readSync(fd, buffer, length, buffer.length - length, length)
    }
    const after = fstatSync(fd)
    const isWhole = length === stats.size && isSameStats(stats, after)
    if (isWhole || attempt === ATTEMPTS) {
      return { content: buffer.subarray(0, length), stats, isWhole }
    }
    stats = after
  }
}

/** The kind of an entry. */
export function kindOf(entry: Dirent | Stats): ListedEntry['kind'] {
  if (entry.isFile()) return 'file'
  if (entry.isDirectory()) return 'folder'
  return entry.isSymbolicLink() ? 'link' : 'other'
}
