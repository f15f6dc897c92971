/**
 * Trees as objects of a store: one per folder, which names files and links by the hash of their
 * content and subfolders by the hash of their object, so that trees share what is equal in them.
 *
 * 1. The same tree always has the same objects. The object at the top holds what was left out as
 *    well; its hash is the id of the checkpoint.
 * 2. Objects are data from elsewhere: whatever they hold, reading them takes linear time, and gives
 *    a tree that rule 1 could have made, or an error that names the object.
 *
 * An object is `version kind [left out] entry…`. Numbers are LEB128; names are bytes with their
 * length before them; entries are in the order of the bytes of their paths. In version 1, folders
 * had no permissions, and empty ones were missing.
 *
 * @module
 */
import type { LeftOut, LeftOutReason } from '../tree.js'
import { MAX_NAMED, MAX_TREE_ENTRIES } from './left-out.js'
import { bytesOfName, nameOfBytes } from '../../internal/bytes.js'

const VERSION = 2
const FOLDER = 0x46
const TOP = 0x54
const HASH_BYTES = 32
/** Longer names and paths exist on no file system that we know. */
const MAX_NAME_BYTES = 255 * 4
const MAX_PATH_BYTES = 4_096
/** Reasons by number; the order is alphabetical. */
const REASONS: readonly LeftOutReason[] = [
  'budget', 'count', 'kind', 'secret', 'size', 'unreadable',
]
const KINDS = ['folder', 'file', 'link'] as const
/** Added to the number of a kind. */
const NOT_STORED = 4

/** One entry of a folder. */
export type FolderEntry =
  | {
      readonly name: string
      readonly kind: 'folder'
      /** Undefined in objects of version 1. */
      readonly mode: number | undefined
      readonly sha256: string
    }
  | {
      readonly name: string
      readonly kind: 'file' | 'link'
      readonly mode: number
      readonly size: number
      readonly sha256: string
      readonly isStored: boolean
    }

/** The object of a folder; of the one at the top, if `leftOut` is given. */
export function encodeFolder(
  entries: readonly FolderEntry[],
  leftOut?: readonly LeftOut[],
): Uint8Array {
  const writer = new Writer()
  writer.byte(VERSION)
  writer.byte(leftOut === undefined ? FOLDER : TOP)
  if (leftOut !== undefined) encodeLeftOut(writer, leftOut)
  for (const entry of inOrder(entries)) {
    const isFolder = entry.kind === 'folder'
    writer.byte(KINDS.indexOf(entry.kind) + (isFolder || entry.isStored ? 0 : NOT_STORED))
    writer.name(entry.name)
    writer.number(entry.mode!)
    if (!isFolder) writer.number(entry.size)
    writer.hash(entry.sha256)
  }
  return writer.done()
}

function encodeLeftOut(writer: Writer, leftOut: readonly LeftOut[]): void {
  writer.number(leftOut.length)
  for (const { reason, count, paths } of leftOut) {
    writer.byte(REASONS.indexOf(reason))
    writer.number(count)
    writer.number(paths.length)
    for (const path of paths) writer.name(path)
  }
}

/** In the order of the bytes of their paths: a folder is followed by a slash. */
function inOrder(entries: readonly FolderEntry[]): readonly FolderEntry[] {
  const keyed = entries.map((entry) => ({ key: keyOf(entry), entry }))
  // From U+D800 on, the order of the code units is not that of the bytes.
  const isPlain = keyed.every(({ key }) => !/[\ud800-\uffff]/.test(key))
  if (isPlain) keyed.sort((a, b) => (a.key < b.key ? -1 : 1))
  else keyed.sort((a, b) => Buffer.compare(bytesOfName(a.key), bytesOfName(b.key)))
  return keyed.map(({ entry }) => entry)
}

function keyOf({ name, kind }: FolderEntry): string {
  return kind === 'folder' ? `${name}/` : name
}

class Writer {
  #buffer = Buffer.allocUnsafe(1_024)
  #length = 0

  byte(value: number): void {
    const at = this.#room(1)
    this.#buffer[at] = value
  }

  number(value: number): void {
    let rest = value
    for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) this.byte((rest % 0x80) + 0x80)
    this.byte(rest)
  }

  name(name: string): void {
    const bytes = bytesOfName(name)
    this.number(bytes.length)
    const at = this.#room(bytes.length)
    this.#buffer.set(bytes, at)
  }

  hash(hex: string): void {
    const at = this.#room(HASH_BYTES)
    this.#buffer.write(hex, at, 'hex')
  }

  done(): Uint8Array {
    return this.#buffer.subarray(0, this.#length)
  }

  /** Makes room for so many bytes, and says where. */
  #room(bytes: number): number {
    const at = this.#length
    this.#length += bytes
    if (this.#length > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(this.#length * 2)
      larger.set(this.#buffer)
      this.#buffer = larger
    }
    return at
  }
}

/** Thrown for an object that is none; the caller names it. */
export class MalformedTree extends Error {
  override name = 'MalformedTree'
}

/** Reads the object of a folder one entry at a time, since a folder may have very many. */
export class FolderReader {
  /** Of the folder at the top; else null. */
  readonly leftOut: readonly LeftOut[] | null
  readonly version: number
  readonly #bytes: Uint8Array
  #at = 0

  /** @throws {@link MalformedTree} */
  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
    this.version = this.#byte()
    if (this.version < 1 || this.version > VERSION) {
      throw new MalformedTree('its version is unknown')
    }
    const kind = this.#byte()
    if (kind !== TOP && kind !== FOLDER) throw new MalformedTree('it is no folder')
    this.leftOut = kind === TOP ? this.#leftOut() : null
  }

  /** @throws {@link MalformedTree} */
  *entries(): Generator<FolderEntry> {
    const names = new Set<string>()
    let before: Uint8Array = EMPTY
    let beforeIsFolder = false
    while (this.#at < this.#bytes.length) {
      const tag = this.#byte()
      const kind = KINDS[tag % NOT_STORED]
      const isFolder = kind === 'folder'
      if (kind === undefined || tag > NOT_STORED + 2 || tag === NOT_STORED) {
        throw new MalformedTree('an entry is of an unknown kind')
      }
      const bytes = this.#take(this.#number(MAX_NAME_BYTES))
      if (!isAfter(bytes, isFolder, before, beforeIsFolder)) {
        throw new MalformedTree('its entries are not in order')
      }
      before = bytes
      beforeIsFolder = isFolder
      const name = checkedName(bytes)
      if (names.has(name)) throw new MalformedTree('two of its entries have the same name')
      names.add(name)
      if (names.size > MAX_TREE_ENTRIES) throw new MalformedTree('it has too many entries')
      if (isFolder) {
        const mode = this.version === 1 ? undefined : this.#number(0o777)
        yield { name, kind, mode, sha256: this.#hash() }
        continue
      }
      const mode = this.#number(0o777)
      const size = this.#number(Number.MAX_SAFE_INTEGER)
      yield { name, kind, mode, size, sha256: this.#hash(), isStored: tag < NOT_STORED }
    }
  }

  #leftOut(): readonly LeftOut[] {
    const found: LeftOut[] = []
    let last = -1
    for (let left = this.#number(REASONS.length); left > 0; left--) {
      const number = this.#byte()
      const reason = REASONS[number]
      if (reason === undefined || number <= last) {
        throw new MalformedTree('it was left out for a reason that is unknown')
      }
      last = number
      const count = this.#number(Number.MAX_SAFE_INTEGER)
      const named = this.#number(MAX_NAMED)
      if (count === 0 || named !== Math.min(count, MAX_NAMED)) {
        throw new MalformedTree('it does not name what was left out')
      }
      const paths = Array.from({ length: named }, () => this.#path())
      found.push({ reason, count, paths })
    }
    return found
  }

  #path(): string {
    const path = nameOfBytes(this.#take(this.#number(MAX_PATH_BYTES)))
    if (path === '.' || path.split('/').every(isName)) return path
    throw new MalformedTree('what was left out has no valid path')
  }

  #byte(): number {
    return this.#take(1)[0]!
  }

  #number(most: number): number {
    let value = 0
    for (let scale = 1; ; scale *= 0x80) {
      const byte = this.#byte()
      value += (byte % 0x80) * scale
      if (value > most || (byte === 0 && scale > 1)) throw new MalformedTree('a number is invalid')
      if (byte < 0x80) return value
    }
  }

  #hash(): string {
    return Buffer.from(this.#take(HASH_BYTES)).toString('hex')
  }

  #take(bytes: number): Uint8Array {
    const end = this.#at + bytes
    if (end > this.#bytes.length) throw new MalformedTree('it is cut off')
    const taken = this.#bytes.subarray(this.#at, end)
    this.#at = end
    return taken
  }
}

const EMPTY = new Uint8Array()
const SLASH = 0x2f

/** Does the name of one entry come after that of the one before, as paths do? */
function isAfter(
  name: Uint8Array,
  isFolder: boolean,
  before: Uint8Array,
  beforeIsFolder: boolean,
): boolean {
  const shared = Math.min(name.length, before.length)
  const order = Buffer.compare(name.subarray(0, shared), before.subarray(0, shared))
  if (order !== 0) return order > 0
  const next = name[shared] ?? (isFolder ? SLASH : -1)
  const nextBefore = before[shared] ?? (beforeIsFolder ? SLASH : -1)
  return next > nextBefore
}

function checkedName(bytes: Uint8Array): string {
  const name = nameOfBytes(bytes)
  if (!isName(name)) throw new MalformedTree('an entry has a name that no file can have')
  return name
}

function isName(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..' && !name.includes('/') && !name.includes('\0')
}
