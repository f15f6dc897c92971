/**
 * Looking at a folder for {@link WorkspaceSnapshot} and for trees: synchronously, since a small
 * file takes ten times as long through the thread pool, by callers that divide their work.
 *
 * 1. Folders are entered through their descriptors, and only if they lie where they should, so that
 *    neither a rename nor a link leads outside (see `paths.ts`).
 * 2. Links are never followed, and nothing but regular files is opened.
 * 3. What is gone, or has become something else, is null; what is not permitted is `unreadable`.
 *    Only faults of the machine are thrown.
 *
 * @module
 */
import {
  closeSync, constants, fstatSync, lstatSync, opendirSync, openSync, readlinkSync, readSync,
  realpathSync, type Dirent, type Stats,
} from 'node:fs'
import { throwIfExhausted } from '../exhaustion.js'
import { codeOf, failure, FOLDER_FLAGS, HAS_PROC } from './paths.js'
import { bytesOfName, nameOfBytes } from '../../internal/bytes.js'

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

/** One name in a folder; what is neither file, folder nor link is `other`. */
export interface ListedEntry {
  readonly name: string
  readonly kind: 'file' | 'folder' | 'link' | 'other'
}

/** Content of a file, with what it was known by before it was read. */
export interface ReadFile {
  readonly content: Uint8Array
  readonly stats: Stats
  /**
   * False for a file that changed at each attempt: its content was read in part before a change.
   */
  readonly isWhole: boolean
}

/** A folder that is held open to be looked at; the caller closes it. */
export class WalkedFolder implements Disposable {
  readonly #fd: number
  readonly #path: string

  constructor(fd: number, path: string) {
    this.#fd = fd
    this.#path = HAS_PROC ? `/proc/self/fd/${fd}` : path
  }

  /** At most `limit` entries, by name; `more` when there are others. */
  list(limit: number): { readonly entries: ListedEntry[]; readonly more: boolean } | 'unreadable' {
    const entries: ListedEntry[] = []
    try {
      // Every byte is a character, so that names which are not UTF-8 arrive whole.
      const options = { encoding: 'latin1', bufferSize: BATCH } as const
      const folder = opendirSync(`${this.#path}/.`, options)
      try {
        for (let entry = folder.readSync(); entry !== null; entry = folder.readSync()) {
          if (entries.length >= limit) return { entries: sorted(entries), more: true }
          entries.push({ name: textOf(entry.name), kind: kindOf(entry) })
        }
      } finally {
        folder.closeSync()
      }
    } catch (error) {
      throwIfExhausted(error)
      return 'unreadable'
    }
    return { entries: sorted(entries), more: false }
  }

  /** What `lstat` says of an entry; null when it is gone. */
  stat(name: string): Stats | null {
    try {
      return lstatSync(this.#entry(name), { throwIfNoEntry: false }) ?? null
    } catch (error) {
      throwIfExhausted(error)
      return null
    }
  }

  /** The target of a link; null when it is none any more. */
  target(name: string): Buffer | null {
    try {
      return readlinkSync(this.#entry(name), 'buffer')
    } catch (error) {
      throwIfExhausted(error)
      return null
    }
  }

  /**
   * Reads a file, again if it changes meanwhile.
   *
   * @param room gives the memory for so many bytes
   * @returns null when it is no file any more, `large` when it has more than `maxBytes`
   */
  read(
    name: string,
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

  #entry(name: string): string | Buffer {
    return pathOf(`${this.#path}/${name}`)
  }

  [Symbol.dispose](): void {
    closeSync(this.#fd)
  }
}

/** The folder at the top, held open until it is disposed of. */
export class WalkedRoot implements Disposable {
  readonly #fd: number
  readonly #path: string
  /** Its real path, one character per byte. */
  #real: string

  /** @throws {@link WorkspaceError} when it cannot be entered. */
  constructor(folder: string) {
    try {
      // The last name of `/proc/self/fd/N` is a link, so one more follows.
      this.#fd = openSync(`${folder}/.`, FOLDER_FLAGS)
    } catch (error) {
      throwIfExhausted(error)
      throw failure(`${folder} cannot be entered`, error)
    }
    this.#path = HAS_PROC ? `/proc/self/fd/${this.#fd}` : realpathSync(folder)
    this.#real = this.#locate()
  }

  /** Its real path now, as text. */
  get real(): string {
    return textOf(this.#real)
  }

  /** False when the folder itself was deleted while it was looked at. */
  get exists(): boolean {
    return fstatSync(this.#fd).nlink > 0
  }

  /** Opens a folder by its relative path; see the comment of this file for what else it returns. */
  open(path: string): WalkedFolder | 'unreadable' | null {
    let fd: number | undefined
    try {
      const at = `${this.#path}/${path === '' ? '.' : path}`
      fd = openSync(pathOf(at), FOLDER_FLAGS)
      const folder = new WalkedFolder(fd, at)
      if (!this.#isAt(fd, at, path)) return null
      fd = undefined
      return folder
    } catch (error) {
      throwIfExhausted(error)
      return GONE.has(codeOf(error) ?? '') ? null : 'unreadable'
    } finally {
      if (fd !== undefined) closeSync(fd)
    }
  }

  #isAt(fd: number, at: string, path: string): boolean {
    if (!HAS_PROC) return realpathSync(at) === at || path === ''
    const real = readlinkSync(`/proc/self/fd/${fd}`, 'latin1')
    const below = path === '' ? '' : `/${bytewise(path)}`
    if (real === `${this.#real}${below}`) return true
    // The folder at the top may have been renamed, which changes nothing in it.
    this.#real = this.#locate()
    return real === `${this.#real}${below}`
  }

  #locate(): string {
    const real = HAS_PROC ? readlinkSync(this.#path, 'latin1') : bytewise(this.#path)
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

function kindOf(entry: Dirent): ListedEntry['kind'] {
  if (entry.isFile()) return 'file'
  if (entry.isDirectory()) return 'folder'
  return entry.isSymbolicLink() ? 'link' : 'other'
}

function sorted(entries: ListedEntry[]): ListedEntry[] {
  return entries.sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** The text of a name whose characters are its bytes. */
function textOf(bytes: string): string {
  return /[^\0-\x7f]/.test(bytes) ? nameOfBytes(Buffer.from(bytes, 'latin1')) : bytes
}

/** One character per byte of a path. */
function bytewise(path: string): string {
  return /[^\0-\x7f]/.test(path) ? bytesOfName(path).toString('latin1') : path
}

/** A path for the file system, as bytes where text would not do. */
function pathOf(path: string): string | Buffer {
  return /\p{Surrogate}/u.test(path) ? bytesOfName(path) : path
}
