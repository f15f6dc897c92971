/**
 * One look at a folder: compares what is there with what is remembered, level by level, and
 * collects what must be read.
 *
 * @module
 */
import { realpathSync, type Stats } from 'node:fs'
import { resolve } from 'node:path'
import { LongWork } from '../../internal/time.js'
import { throwIfExhausted } from '../exhaustion.js'
import { childOf, newFolder, type KnownFile, type KnownFolder } from './known-folder.js'
import {
  isPassedOver, isTemporary, LeftOutPaths, MAX_TREE_DEPTH, MAX_TREE_ENTRIES, type AllTreeRules,
} from './left-out.js'
import { isRepository } from './git-names.js'
import { isInside } from './paths.js'
import { exactPath, exactText } from './raw-paths.js'
import { unlessGone, WalkedRoot, type ListedEntry, type ReadFile, type WalkedFolder }
  from './walk-folder.js'

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
}

/** What was read; of a link, its target. */
export interface ReadEntry extends ReadFile {
  readonly kind: 'file' | 'link'
}

/** Tells what holds secrets by its path or name. */
type IsSecret = (path: string, name: string) => boolean

/** See the comment of this file. The folder is held open until it is disposed of. */
export class FolderScan implements Disposable {
  readonly startedAt: number = Date.now()
  readonly leftOut: LeftOutPaths = new LeftOutPaths()
  /** Each after the one that it lies in. */
  readonly folders: Place[] = []
  readonly unread: Unread[] = []
  readonly #root: WalkedRoot
  readonly #rules: AllTreeRules
  readonly #look: number
  readonly #storeContents: boolean
  /** Closed folders that lie in this one. */
  readonly #closed: ReadonlySet<string>
  #isSecret: IsSecret = () => false
  #entries = 0
  /** The folder of which something was read last. */
  #opened: { readonly path: string; readonly folder: WalkedFolder } | null = null

  /** @throws {@link WorkspaceError} when the folder cannot be entered. */
  constructor(folder: string, rules: AllTreeRules, look: number, storeContents: boolean) {
    this.#root = new WalkedRoot(folder)
    this.#rules = rules
    this.#look = look
    this.#storeContents = storeContents
    this.#closed = closedIn(this.#root.real, rules.closed)
  }

  /** False when the folder was deleted meanwhile. */
  get exists(): boolean {
    return this.#root.exists
  }

  async run(top: KnownFolder, isSecret: IsSecret, signal: AbortSignal): Promise<void> {
    this.#isSecret = isSecret
    const work = new LongWork()
    this.folders.push({ folder: top, path: '', parent: null })
    let end = 1
    for (let at = 0, depth = 0; at < this.folders.length; at++) {
      if (at === end) {
        end = this.folders.length
        depth += 1
      }
      if (work.isDue) await work.next()
      signal.throwIfAborted()
      await this.#visit(this.folders[at]!, depth, work)
    }
  }

  async #visit(place: Place, depth: number, work: LongWork): Promise<void> {
    const { folder, path } = place
    const isLeftOut = depth > MAX_TREE_DEPTH || this.#entries >= this.#rules.entries
    if (isLeftOut) this.leftOut.add('count', path)
    let seen = 0
    if (!isLeftOut && !this.#closed.has(path)) {
      for (const entry of this.#list(path)) {
        if (work.isDue) await work.next()
        if (this.#entry(place, entry)) seen += 1
      }
    }
    if (folder.entries.size === seen) return
    for (const [name, { seenAt }] of folder.entries) {
      if (seenAt === this.#look) continue
      folder.entries.delete(name)
      folder.isStale = true
    }
  }

  #list(path: string): readonly ListedEntry[] {
    const opened = this.#open(path)
    if (opened === null) return []
    const found =
      opened === 'unreadable' ? null : unlessGone(() => opened.list(MAX_TREE_ENTRIES))
    if (found === null) {
      this.leftOut.add('unreadable', path)
      return []
    }
    if (isRepository(found.entries.map(({ name }) => name))) {
      this.leftOut.add('kind', path)
      return []
    }
    if (found.more) this.leftOut.add('count', path)
    return found.entries.map(({ name, kind }) => ({ name: exactText(name), kind }))
  }

  /** True for what was remembered and is still there. */
  #entry({ folder, path }: Place, { name, kind }: ListedEntry): boolean {
    const known = folder.entries.get(name)
    if (known === undefined || this.#closed.size > 0) {
      const child = childOf(path, name)
      if (this.#closed.has(child)) return false
      if (isTemporary(name)) return false
      if (isPassedOver(name)) return this.#omit('passed_over', child)
      if (known === undefined && this.#isSecret(child, name)) return this.#omit('secret', child)
    }
    if (kind === 'other') return this.#omit('kind', childOf(path, name))
    if (this.#entries >= this.#rules.entries) return this.#omit('count', childOf(path, name))
    this.#entries += 1
    return kind === 'folder' ? this.#folder(folder, path, name) : this.#file(folder, path, name)
  }

  #omit(reason: 'secret' | 'kind' | 'count' | 'size' | 'passed_over', path: string): false {
    this.leftOut.add(reason, path)
    return false
  }

  #folder(parent: KnownFolder, path: string, name: string): boolean {
    const known = parent.entries.get(name)
    const isKnown = known?.kind === 'folder'
    const folder = isKnown ? known : newFolder()
    folder.seenAt = this.#look
    if (!isKnown) {
      parent.entries.set(name, folder)
      parent.isStale = true
    }
    this.folders.push({ folder, path: childOf(path, name), parent })
    return true
  }

  #file(folder: KnownFolder, path: string, name: string): boolean {
    const opened = this.#open(path)
    const stats = opened instanceof Object ? opened.stat(exactPath(name)) : null
    if (stats === null || stats.isDirectory()) return false
    const kind = stats.isFile() ? 'file' : stats.isSymbolicLink() ? 'link' : null
    if (kind === null) return this.#omit('kind', childOf(path, name))
    if (stats.size > this.#rules.fileBytes) return this.#omit('size', childOf(path, name))
    const entry = folder.entries.get(name)
    if (entry?.kind === kind && isUnchanged(entry, stats)) {
      if (!this.#storeContents || entry.stored !== 'unknown' || entry.isSecret) {
        if (entry.isSecret) this.leftOut.add('secret', childOf(path, name))
        entry.seenAt = this.#look
        return true
      }
    }
    this.unread.push({ folder, path, name, kind, size: stats.size })
    if (entry === undefined) return false
    entry.seenAt = this.#look
    return true
  }

  /** Reads something; null when it is no part of the tree, and forgotten. */
  read(one: Unread, room: (bytes: number) => Uint8Array): ReadEntry | null {
    const opened = this.#open(one.path)
    const found =
      opened === null || opened === 'unreadable'
        ? opened
        : one.kind === 'link'
          ? readLink(opened, one.name)
          : opened.read(exactPath(one.name), this.#rules.fileBytes, room)
    if (found !== null && found !== 'unreadable' && found !== 'large') {
      return { ...found, kind: one.kind }
    }
    if (found !== null) {
      this.leftOut.add(found === 'large' ? 'size' : found, childOf(one.path, one.name))
    }
    one.folder.entries.delete(one.name)
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

function readLink(opened: WalkedFolder, name: string): ReadFile | null {
  const stats = opened.stat(exactPath(name))
  const content = opened.target(exactPath(name))
  return stats === null || content === null ? null : { content, stats, isWhole: true }
}

function isUnchanged(known: KnownFile, stats: Stats): boolean {
  return (
    known.isSettled &&
    known.ctimeMs === stats.ctimeMs &&
    known.mtimeMs === stats.mtimeMs &&
    known.size === stats.size &&
    known.ino === stats.ino &&
    (known.kind === 'link' || known.mode === (stats.mode & 0o777))
  )
}

/** Paths of closed folders that lie in a folder; the folder itself when it lies in one. */
function closedIn(real: string, closed: readonly string[]): ReadonlySet<string> {
  const paths = new Set<string>()
  for (const folder of closed) {
    const at = realOrAsIs(folder)
    if (isInside(real || '/', at)) paths.add('')
    else if (isInside(at, real || '/')) paths.add(at.slice(real.length + 1))
  }
  return paths
}

function realOrAsIs(path: string): string {
  try {
    return realpathSync(path)
  } catch (error) {
    throwIfExhausted(error)
    return resolve(path)
  }
}
