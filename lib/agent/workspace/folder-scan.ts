/**
 * One look at a folder: compares what is there with what is remembered, level by level, so that a
 * bound on entries leaves out the deepest, and collects what must be read.
 *
 * 1. A file is unchanged as long as its stats are: a program that edits it cannot set its change
 *    time back. A folder is listed again only if its own stats changed, where file systems are
 *    known to change those with its names.
 * 2. Stats come from plain paths, which is faster than through a descriptor. They only confirm what
 *    is remembered, or say what is worth reading; names and contents, and all that is left out,
 *    come through descriptors, see `walk-folder.ts`.
 *
 * @module
 */
import fs, { lstatSync, type Stats } from 'node:fs'
import { LongWork } from '../../internal/time.js'
import type { LeftOutReason } from '../tree.js'
import {
  childOf, filesBelow, newFolder, type KnownFile, type KnownFolder, type Listing,
} from './folder-cache.js'
import { isRepository } from './git-names.js'
import {
  isPassedOver, isTemporary, LeftOutPaths, MAX_TREE_DEPTH, MAX_TREE_ENTRIES,
} from './left-out.js'
import { isInside } from './paths.js'
import { exactPath, exactText, toSystem, type RawPath } from './raw-paths.js'
import {
  unlessGone, WalkedRoot, WorkStopped, type ListedEntry, type ReadFile, type WalkedFolder,
} from './walk-folder.js'

/** What is looked at, and for what. */
export interface ScanRules {
  /** Real paths of folders that do not exist for runs. */
  readonly closed: readonly string[]
  /** Files, links and folders at most. */
  readonly entries: number
  /** Entries beyond which the look is given up. @defaultValue no limit */
  readonly most?: number
  /** Bytes of a file that is read. */
  readonly fileBytes: number
  /** True if larger files are remembered without their content, false if they are left out. */
  readonly keepsLarge: boolean
  /** True if what is not known to be stored is read again. */
  readonly storeContents: boolean
  /** Tells what holds secrets by its path or name. */
  readonly isSecret: (path: string, name: string) => boolean
  /** Called with what was remembered and is not there any more. */
  readonly onGone?: (path: string, file: KnownFile) => void
}

/** A folder of the tree. */
interface Place {
  readonly folder: KnownFolder
  readonly path: string
  /** Null at the top. */
  readonly parent: KnownFolder | null
}

/** A file or link that must be read. */
export interface Unread {
  readonly folder: KnownFolder
  /** The path of its folder. */
  readonly path: string
  readonly name: string
  readonly kind: 'file' | 'link'
  readonly size: number
  /** When it was created or last changed, in epoch milliseconds. */
  readonly born: number
}

/** What was read; of a link, its target. */
export interface ReadEntry extends ReadFile {
  readonly kind: 'file' | 'link'
}

/** A folder changed this recently may change again within one tick of the disk's clock. */
const UNSETTLED_MS = 2_000
/**
 * File systems of Linux that change the times of a folder with its names: ext, XFS, Btrfs, tmpfs,
 * overlayfs, ZFS, F2FS. Network file systems may not.
 */
const CHANGES_FOLDER_TIMES: ReadonlySet<number> = new Set([
  0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630, 0x2fc12fc1, 0xf2f52010,
])

/** See the comment of this file. The folder is held open until it is disposed of. */
export class FolderScan implements Disposable {
  readonly startedAt: number = Date.now()
  readonly leftOut: LeftOutPaths = new LeftOutPaths()
  /** Each after the one that it lies in. */
  readonly folders: Place[] = []
  readonly unread: Unread[] = []
  /** True when not all entries were looked at. */
  isPartial = false
  readonly #root: WalkedRoot
  /** The plain path of the folder. */
  readonly #plain: RawPath
  readonly #rules: ScanRules
  readonly #look: number
  /** Closed folders that lie in this one. */
  readonly #closed: ReadonlySet<string>
  /** The device on which unchanged folders are not listed again; null for none. */
  #trusted: number | null | undefined
  #entries = 0
  /** Of the folder that is being listed; null if it must be listed again. */
  #listing: (Listing & { readonly omitted: [LeftOutReason, string][] }) | null = null
  readonly #listings: Map<KnownFolder, Listing> = new Map()
  /** The folder of which something was read last. */
  #opened: { readonly path: string; readonly folder: WalkedFolder } | null = null

  /** @throws {@link WorkspaceError} when the folder cannot be entered. */
  constructor(folder: string, rules: ScanRules, look: number) {
    this.#root = new WalkedRoot(folder)
    this.#rules = rules
    this.#look = look
    this.#plain = exactPath(this.#root.real)
    this.#closed = closedIn(this.#root.real, rules.closed)
  }

  /** False when the folder was deleted meanwhile. */
  get exists(): boolean {
    return this.#root.exists
  }

  async run(top: KnownFolder, check?: () => void): Promise<void> {
    const work = new LongWork()
    this.folders.push({ folder: top, path: '', parent: null })
    let end = 1
    for (let at = 0, depth = 0; at < this.folders.length; at++) {
      if (at === end) {
        end = this.folders.length
        depth += 1
      }
      if (work.isDue) await work.next()
      check?.()
      await this.#visit(this.folders[at]!, depth, work)
    }
  }

  async #visit(place: Place, depth: number, work: LongWork): Promise<void> {
    const { folder, path } = place
    const isLeftOut = depth > MAX_TREE_DEPTH || this.#entries >= this.#rules.entries
    if (isLeftOut) this.#cut(path)
    let seen = 0
    if (isLeftOut || this.#closed.has(path)) setMode(place, -1)
    else {
      const isListed = this.#isListed(place)
      for (const [name, { kind }] of isListed ? folder.entries : this.#list(place)) {
        if (work.isDue) await work.next()
        if (this.#entry(place, name, kind)) seen += 1
      }
      if (!isListed && this.#listing !== null) this.#listings.set(folder, this.#listing)
    }
    if (folder.entries.size !== seen) this.#forgetUnseen(place)
  }

  /** To be called once all is read, so that nothing is missing in what is remembered. */
  finish(): void {
    for (const [folder, listing] of this.#listings) {
      folder.listing = listing
      sortEntries(folder.entries)
    }
  }

  #forgetUnseen({ folder, path }: Place): void {
    folder.listing = null
    for (const [name, entry] of folder.entries) {
      if (entry.seenAt === this.#look) continue
      this.#gone(childOf(path, name), entry)
      folder.entries.delete(name)
      folder.isStale = true
    }
  }

  #gone(path: string, entry: KnownFile | KnownFolder): void {
    const { onGone } = this.#rules
    if (onGone === undefined) return
    if (entry.kind !== 'folder') onGone(path, entry)
    else for (const [below, file] of filesBelow(entry, path)) onGone(below, file)
  }

  /** True for a folder that has the names that are remembered. */
  #isListed(place: Place): boolean {
    const { folder, path } = place
    const { listing } = folder
    if (listing === null) return false
    const stats = this.#confirm(path)
    this.#trusted ??= trustedDevice(toSystem(this.#plain || '/'))
    if (stats === null || stats.dev !== this.#trusted || !stats.isDirectory()) return false
    if (!isSameListing(listing, stats)) return false
    for (const [reason, name] of listing.omitted) this.leftOut.add(reason, childOf(path, name))
    setMode(place, stats.mode & 0o777)
    return true
  }

  /** What the plain path leads to; null when that is nothing. */
  #confirm(path: string): Stats | null {
    const raw = path === '' ? `${this.#plain}/.` : `${this.#plain}/${exactPath(path)}`
    return unlessGone(() => lstatSync(toSystem(raw), { throwIfNoEntry: false })) ?? null
  }

  #list(place: Place): ReadonlyMap<string, Pick<ListedEntry, 'kind'>> {
    const { folder, path } = place
    folder.listing = null
    this.#listing = null
    const names = new Map<string, ListedEntry>()
    const leaveOut = (reason: LeftOutReason | null): typeof names => {
      if (reason !== null) this.leftOut.add(reason, path)
      setMode(place, -1)
      return names
    }
    const opened = this.#open(path)
    if (opened === null) return leaveOut(null)
    const stats = opened === 'unreadable' ? null : opened.ownStats
    const found =
      opened === 'unreadable' ? null : unlessGone(() => opened.list(MAX_TREE_ENTRIES))
    if (found === null || stats === null) return leaveOut('unreadable')
    if (isRepository(found.entries.map(({ name }) => name))) return leaveOut('kind')
    if (found.more) this.#cut(path)
    setMode(place, stats.mode & 0o777)
    const { ino, mtimeMs, ctimeMs } = stats
    const isSettled = this.startedAt - UNSETTLED_MS > Math.max(mtimeMs, ctimeMs)
    if (isSettled && !found.more) this.#listing = { ino, mtimeMs, ctimeMs, omitted: [] }
    for (const entry of found.entries) names.set(exactText(entry.name), entry)
    return names
  }

  /** True for what was remembered and is still there. */
  #entry({ folder, path }: Place, name: string, kind: ListedEntry['kind']): boolean {
    const known = folder.entries.get(name)
    if (known === undefined || this.#closed.size > 0) {
      const child = childOf(path, name)
      if (this.#closed.has(child)) return this.#omit(null)
      if (isTemporary(name)) return false
      if (isPassedOver(name)) return this.#omit('passed_over', path, name)
      if (known === undefined && this.#rules.isSecret(child, name)) {
        return this.#omit('secret', path, name)
      }
    }
    if (kind === 'other') return this.#omit('kind', path, name)
    if (this.#entries >= this.#rules.entries) {
      this.#cut(childOf(path, name))
      return this.#omit(null)
    }
    this.#entries += 1
    if (this.#entries > (this.#rules.most ?? Infinity)) throw new WorkStopped('too large')
    return kind === 'folder' ? this.#folder(folder, path, name) : this.#file(folder, path, name)
  }

  /** Notes what is left out; the folder is listed again if there is no lasting reason. */
  #omit(reason: LeftOutReason | null, path: string = '', name: string = ''): false {
    if (reason === null) this.#listing = null
    else {
      this.leftOut.add(reason, childOf(path, name))
      this.#listing?.omitted.push([reason, name])
    }
    return false
  }

  #cut(path: string): void {
    this.isPartial = true
    this.leftOut.add('count', path)
  }

  #folder(parent: KnownFolder, path: string, name: string): boolean {
    const known = parent.entries.get(name)
    const isKnown = known?.kind === 'folder'
    const folder = isKnown ? known : newFolder()
    folder.seenAt = this.#look
    const child = childOf(path, name)
    if (!isKnown) {
      if (known !== undefined) this.#gone(child, known)
      parent.entries.set(name, folder)
      parent.isStale = true
    }
    this.folders.push({ folder, path: child, parent })
    return true
  }

  #file(folder: KnownFolder, path: string, name: string): boolean {
    const known = folder.entries.get(name)
    const child = childOf(path, name)
    const seen = this.#confirm(child)
    if (known !== undefined && known.kind !== 'folder') {
      if (seen !== null && isUnchanged(known, seen) && this.#isDone(known)) {
        if (known.isSecret) this.leftOut.add('secret', child)
        this.#noteNames(child, seen)
        known.seenAt = this.#look
        return true
      }
    }
    const stats = this.#isReadable(seen) ? seen : this.stat({ path, name })
    if (stats === null || stats.isDirectory()) return this.#omit(null)
    const kind = stats.isFile() ? 'file' : stats.isSymbolicLink() ? 'link' : null
    if (kind === null) return this.#omit('kind', path, name)
    if (stats.size > this.#rules.fileBytes && !this.#rules.keepsLarge) {
      this.leftOut.add('size', child)
      return this.#omit(null)
    }
    this.#noteNames(child, stats)
    const { birthtimeMs, ctimeMs, size } = stats
    this.unread.push({ folder, path, name, kind, size, born: Math.max(birthtimeMs, ctimeMs) })
    // A folder that became a file is forgotten at the end of its listing.
    if (known === undefined || known.kind === 'folder') return false
    known.seenAt = this.#look
    return true
  }

  #noteNames(path: string, stats: Stats): void {
    if (stats.nlink > 1 && stats.isFile()) this.leftOut.add('hard_link', path)
  }

  /** True for what will be read through its descriptor, wherever its plain path leads. */
  #isReadable(stats: Stats | null): stats is Stats {
    if (stats === null || stats.size > this.#rules.fileBytes) return false
    return stats.isFile() || stats.isSymbolicLink()
  }

  /** True if a file need not be read as long as it is unchanged. */
  #isDone({ isSecret, stored }: KnownFile): boolean {
    return !this.#rules.storeContents || stored !== 'unknown' || isSecret
  }

  /** The stats of something in a folder; null when it is gone. */
  stat({ path, name }: Pick<Unread, 'path' | 'name'>): Stats | null {
    const opened = this.#open(path)
    return opened instanceof Object ? opened.stat(exactPath(name)) : null
  }

  /** Reads something; null when it is no part of the tree, and forgotten. */
  read(one: Unread, room: (bytes: number) => Uint8Array): ReadEntry | null {
    const opened = this.#open(one.path)
    const found =
      opened === null || opened === 'unreadable'
        ? opened
        : one.kind === 'link'
          ? readLink(opened, exactPath(one.name))
          : opened.read(exactPath(one.name), this.#rules.fileBytes, room)
    if (found !== null && found !== 'unreadable' && found !== 'large') {
      return { ...found, kind: one.kind }
    }
    if (found !== null) {
      this.leftOut.add(found === 'large' ? 'size' : found, childOf(one.path, one.name))
    }
    one.folder.entries.delete(one.name)
    this.#listings.delete(one.folder)
    one.folder.listing = null
    one.folder.isStale = true
    return null
  }

  #open(path: string): WalkedFolder | 'unreadable' | null {
    if (this.#opened?.path === path) return this.#opened.folder
    this.#close()
    const folder = this.#root.open(path)
    if (folder !== null && folder !== 'unreadable') this.#opened = { path, folder }
    return folder
  }

  #close(): void {
    this.#opened?.folder[Symbol.dispose]()
    this.#opened = null
  }

  [Symbol.dispose](): void {
    this.#close()
    this.#root[Symbol.dispose]()
  }
}

/** Puts entries in the order of a listing, so that a bound leaves out the same ones each time. */
function sortEntries(entries: KnownFolder['entries']): void {
  const all = [...entries].map(([name, entry]) => ({ raw: exactPath(name), name, entry }))
  if (all.every(({ raw }, i) => i === 0 || all[i - 1]!.raw < raw)) return
  entries.clear()
  for (const { name, entry } of all.sort((a, b) => (a.raw < b.raw ? -1 : 1))) {
    entries.set(name, entry)
  }
}

function setMode({ folder, parent }: Place, mode: number): void {
  if (folder.mode === mode) return
  folder.mode = mode
  folder.isStale = true
  if (parent !== null) parent.isStale = true
}

function readLink(opened: WalkedFolder, name: RawPath): ReadFile | null {
  const stats = opened.stat(name)
  const content = opened.target(name)
  return stats === null || content === null ? null : { content, stats, isWhole: true }
}

function isUnchanged(known: KnownFile, stats: Stats): boolean {
  return (
    known.isSettled &&
    known.ctimeMs === stats.ctimeMs &&
    known.mtimeMs === stats.mtimeMs &&
    known.size === stats.size &&
    known.ino === stats.ino &&
    (known.kind === 'link' ? stats.isSymbolicLink() : isFileOfMode(stats, known.mode))
  )
}

function isFileOfMode(stats: Stats, mode: number): boolean {
  return stats.isFile() && mode === (stats.mode & 0o777)
}

function isSameListing(a: Listing, b: Stats): boolean {
  return a.ino === b.ino && a.mtimeMs === b.mtimeMs && a.ctimeMs === b.ctimeMs
}

/** The device of a folder, if its file system changes the times of folders with their names. */
function trustedDevice(path: string | Buffer): number | null {
  if (process.platform !== 'linux') return null
  return unlessGone(() =>
    CHANGES_FOLDER_TIMES.has(fs.statfsSync(path).type) ? lstatSync(path).dev : null,
  )
}

/** Paths of closed folders that lie in a folder; the folder itself when it lies in one. */
function closedIn(real: string, closed: readonly string[]): ReadonlySet<string> {
  const paths = new Set<string>()
  for (const at of closed) {
    if (isInside(real || '/', at)) paths.add('')
    else if (isInside(at, real || '/')) paths.add(at.slice(real.length + 1))
  }
  return paths
}
