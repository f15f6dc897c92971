/**
 * The trees of one folder, looked at again and again: what it held the last time is remembered, so
 * that only what may have changed is read (see `folder-scan.ts`).
 *
 * 1. What had changed within two seconds before a look is read again at the next one, because times
 *    have a granularity.
 * 2. Contents are on their way to the store when their hash is known; trees follow when all
 *    contents are durable, folders before those that they lie in, so that nothing stored ever
 *    refers to something that is not.
 *
 * @module
 */
import { realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import { hash } from '../../internal/hash.js'
import { LongWork } from '../../internal/time.js'
import { WorkspaceError } from '../errors.js'
import { throwIfExhausted } from '../exhaustion.js'
import { FolderScan, type ReadEntry, type Unread } from './folder-scan.js'
import {
  childOf, entriesOf, forget, newFolder, summarize, type KnownFile, type KnownFolder,
} from './folder-cache.js'
import type { LeftOut } from '../tree.js'
import {
  isOfTree, isPrivateKey, secretPaths, type AllTreeRules, type LeftOutPaths,
} from './left-out.js'
import { Batches, type SendBatch } from './tree-batches.js'
import { encodeFolder } from './tree-objects.js'
import { WorkStopped } from './walk-folder.js'

/** A file changed this recently may change again within one tick of the disk's clock. */
const UNSETTLED_MS = 2_000
/** How much more than its share a run may store of what changed since its first capture. */
const CHANGED_SHARE = 4

/** The size of a folder. */
export interface TrackedSize {
  readonly entries: number
  readonly bytes: number
}

const UNLIMITED: TrackedSize = { entries: Infinity, bytes: Infinity }

/** What a look found. */
export interface Look {
  readonly checkpointId: string
  readonly files: number
  readonly bytes: number
  readonly leftOut: readonly LeftOut[]
}

/** What is to be done with what is found. */
export interface LookOptions {
  /** Called between steps; throws to end the look. */
  readonly check: () => void
  /** Stores contents, after which trees are stored; null: only trees are, whether new or not. */
  readonly storeContents: boolean
  /** Null: only what is found counts. */
  readonly send: SendBatch | null
  /** The last checkpoint of the run that is durable. */
  readonly previous: string | null
  /**
   * Called when the checkpoint before is not that of the last look. Resolves with what that one did
   * not store, as path and hash in turns.
   */
  readonly notStoredIn: (checkpointId: string) => Promise<readonly string[]>
}

/** See the comment of this file. */
export class FolderTracker {
  readonly rules: AllTreeRules
  readonly #most: TrackedSize
  readonly #isSecretPath: (path: string, name: string) => boolean
  readonly #top: KnownFolder = newFolder()
  #look = 0
  /**
   * The checkpoint whose objects are known to be stored; undefined at first, and after an error.
   */
  #stored: string | undefined
  /** Bytes and contents that count for the run's share; of these, 48 bits of their hash. */
  #used = 0
  #counted = new Set<number>()
  #files = 0

  /** @param most entries, and bytes to be read, beyond which a look is stopped */
  constructor(rules: AllTreeRules, most: TrackedSize = UNLIMITED) {
    this.rules = rules
    this.#most = most
    this.#isSecretPath = secretPaths(rules)
  }

  /** Entries that are remembered. */
  get size(): number {
    return this.#files
  }

  /**
   * Looks at the folder.
   *
   * @throws {@link WorkspaceError} when it cannot be entered, or is deleted meanwhile; for faults
   * of the machine; what `send` and `check` throw; {@link WorkStopped} for a folder that is too
   * large to be tracked here.
   */
  async look(folder: string, options: LookOptions): Promise<Look> {
    const { storeContents } = options
    const closed = this.rules.closed.map(realOrAsIs)
    const [isSecret, most] = [this.#isSecretPath, this.#most.entries]
    const looked = { closed, isSecret, keepsLarge: false, most, storeContents }
    using scan = new FolderScan(folder, { ...this.rules, ...looked }, this.#look + 1)
    const notStored = storeContents ? await this.#begin(options) : null
    this.#look += 1
    await scan.run(this.#top, options.check)
    await this.#read(scan, notStored, options)
    scan.finish()
    if (!scan.exists) throw new WorkspaceError('ERR_AGENT_WORKSPACE_LOST', `${folder} was deleted`)
    return await this.#build(scan, options)
  }

  /** Finds out what is stored already, and what is not. */
  async #begin({ previous, notStoredIn }: LookOptions): Promise<ReadonlyMap<string, string>> {
    const notStored = new Map<string, string>()
    const isKnown = this.#stored !== undefined && this.#stored === previous
    // What is stored by a look that fails may be reclaimed before the next one.
    this.#stored = undefined
    if (isKnown) return notStored
    const pairs = previous === null ? [] : await notStoredIn(previous)
    for (let i = 0; i < pairs.length; i += 2) notStored.set(pairs[i]!, pairs[i + 1]!)
    forget(this.#top)
    this.#counted = new Set()
    this.#used = 0
    return notStored
  }

  async #read(
    scan: FolderScan,
    notStored: ReadonlyMap<string, string> | null,
    options: LookOptions,
  ): Promise<void> {
    const { unread } = scan
    const isFirst = options.storeContents && options.previous === null
    let left = 0
    for (const { size } of unread) left += size + 1
    if (left > this.#most.bytes) throw new WorkStopped('too large')
    if (isFirst && left > this.rules.budgetBytes) {
      unread.sort((a, b) => a.size - b.size)
    }
    const most = this.rules.budgetBytes * (isFirst ? 1 : CHANGED_SHARE)
    const batches = new Batches(options.storeContents ? options.send : null, false)
    const work = new LongWork()
    for (const one of unread) {
      if (work.isDue) await work.next()
      options.check()
      const room = one.size + 1
      await batches.makeRoom(room, left)
      left -= room
      const found = scan.read(one, (bytes) => batches.room(bytes))
      if (found === null) continue
      const known = this.#remember(one, found, scan)
      if (!options.storeContents || known.isSecret || known.stored !== 'unknown') continue
      const path = childOf(one.path, one.name)
      // Hashed even so, once: by its hash a later look sees that the run changed it, net changes
      // and restores tell it from what others wrote, and equal trees have equal ids.
      if (notStored?.get(path) === known.sha256 || !this.#count(known, most)) {
        known.stored = 'never'
        continue
      }
      await batches.add(known.sha256, found.content, () => (known.stored = 'yes'))
    }
    await batches.end()
  }

  /** Counts content for the run's share; false when there is no room for it. */
  #count({ sha256, size }: KnownFile, most: number): boolean {
    const short = Number.parseInt(sha256.slice(0, 12), 16)
    if (this.#counted.has(short)) return true
    if (this.#used + size > most) return false
    this.#counted.add(short)
    this.#used += size
    return true
  }

  #remember({ folder, path, name }: Unread, found: ReadEntry, scan: FolderScan): KnownFile {
    const { content, stats, isWhole, kind } = found
    const entry = folder.entries.get(name)
    const before = entry?.kind === kind ? entry : undefined
    const sha256 = hash('sha256', content)
    const mode = kind === 'link' ? 0o777 : stats.mode & 0o777
    const isSecret = kind === 'file' && !this.rules.storeSecretFiles && isPrivateKey(content)
    const known: KnownFile = {
      kind,
      mode,
      size: content.length,
      sha256,
      ino: stats.ino,
      mtimeMs: stats.mtimeMs,
      ctimeMs: stats.ctimeMs,
      isSettled: isWhole && scan.startedAt - UNSETTLED_MS > Math.max(stats.ctimeMs, stats.mtimeMs),
      isSecret,
      content: null,
      stored: before?.sha256 === sha256 ? before.stored : 'unknown',
      seenAt: this.#look,
    }
    folder.entries.set(name, known)
    if (before?.sha256 !== sha256 || before.mode !== mode) folder.isStale = true
    if (isSecret) scan.leftOut.add('secret', childOf(path, name))
    return known
  }

  /** Makes the objects of all folders that changed, and sends those that are not stored. */
  async #build(scan: FolderScan, options: LookOptions): Promise<Look> {
    const batches = new Batches(options.send, true)
    const work = new LongWork()
    let [files, bytes] = [0, 0]
    // Folders come after those that they lie in.
    for (const { folder, path, parent } of scan.folders.reverse()) {
      if (work.isDue) await work.next()
      options.check()
      if (folder.isStale) summarize(folder)
      if (parent !== null) await this.#update(folder, parent, batches, options)
      files += folder.files
      bytes += folder.bytes
      if (folder.notStored > 0) nameNotStored(folder, path, scan.leftOut)
    }
    this.#files = files
    await batches.end()
    const leftOut = scan.leftOut.list()
    const inTree = leftOut.filter(isOfTree)
    const object = encodeFolder(entriesOf(this.#top), inTree)
    const checkpointId = hash('sha256', object)
    if (!options.storeContents || checkpointId !== options.previous) {
      await batches.add(checkpointId, object, () => undefined)
      await batches.end()
    }
    if (options.storeContents) this.#stored = checkpointId
    return { checkpointId, files, bytes, leftOut }
  }

  async #update(
    folder: KnownFolder,
    parent: KnownFolder,
    batches: Batches,
    options: LookOptions,
  ): Promise<void> {
    const isSent = options.storeContents && folder.isStored
    if (!folder.isStale && (isSent || folder.sha256 === '')) return
    const entries = entriesOf(folder)
    const object = encodeFolder(entries)
    if (folder.isStale) {
      folder.isStale = false
      const sha256 = folder.mode < 0 ? '' : hash('sha256', object)
      if (sha256 !== folder.sha256) {
        folder.sha256 = sha256
        folder.isStored = false
        parent.isStale = true
      }
    }
    if (folder.sha256 === '' || (options.storeContents && folder.isStored)) return
    const onStored = (): void => void (folder.isStored ||= options.storeContents)
    await batches.add(folder.sha256, object, onStored)
  }
}

function nameNotStored(folder: KnownFolder, path: string, leftOut: LeftOutPaths): void {
  for (const [name, entry] of folder.entries) {
    if (entry.kind === 'folder' || entry.isSecret || entry.stored !== 'never') continue
    leftOut.add('budget', childOf(path, name))
  }
}

function realOrAsIs(path: string): string {
  try {
    return realpathSync(path)
  } catch (error) {
    throwIfExhausted(error)
    return resolve(path)
  }
}
