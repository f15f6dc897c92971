/**
 * What a command did to the files of a workspace, found by scanning it before and after.
 *
 * 1. A scan costs one `lstat` per entry: it reads only files whose size, mode, inode or times
 *    differ from the previous scan. A program that edits a file cannot set its change time back.
 * 2. Entries, depth, kept content, reported changes and their diffs are bounded. Content beyond the
 *    bounds is reported without a diff; entries beyond the bounds are not reported.
 * 3. Folders are entered through their descriptors and links are not followed, so nothing outside
 *    is ever read (see `paths.ts`). Version control, dependencies and caches are skipped.
 *
 * @module
 */
import { lstatSync, type Stats } from 'node:fs'
import { join } from 'node:path'
import { hash } from '../../internal/bytes.js'
import { inSlices, nextTurn } from '../../internal/time.js'
import { throwIfExhausted } from '../exhaustion.js'
import { modeOf } from './describe-changes.js'
import { fileChange } from './diff.js'
import { oneLine } from './text.js'
import { childOf } from './known-folder.js'
import { isPassedOver, MAX_TREE_DEPTH, MAX_TREE_ENTRIES } from './left-out.js'
import { changesBetween, type Change } from './net-changes.js'
import type { FileChange } from './workspace.js'
import { isRepository } from './git-names.js'
import { type Confinement } from './paths.js'
import { exactPath, exactText } from './raw-paths.js'
import { unlessGone, WalkedRoot, type ListedEntry, type WalkedFolder } from './walk-folder.js'

/** Bounds of {@link WorkspaceSnapshot}. */
export interface SnapshotLimits {
  /** Entries scanned, nearest to the top first. */
  readonly entries: number
  /** Bytes of one file that is kept to compare with. */
  readonly fileBytes: number
  /** Bytes of all files that are kept. */
  readonly keptBytes: number
  /** Changes reported at once. */
  readonly changes: number
  /** Bytes of all their diffs; a diff beyond that is left empty. */
  readonly diffBytes: number
}

/** The bounds for workspaces of runs. */
export const SNAPSHOT_LIMITS: SnapshotLimits = {
  entries: 20_000,
  fileBytes: 256 * 1024,
  keptBytes: 16 * 1024 * 1024,
  changes: 200,
  diffBytes: 128 * 1024,
}

/** Entries scanned between yields to the event loop. */
const SLICE = 100
/** A file changed this recently may change again within one tick of the disk's clock. */
const UNSETTLED_MS = 50

/** One file or link at the time of a scan. */
interface Entry {
  /** What `lstat` reported; empty when the file must be read again in any case. */
  readonly fingerprint: string
  readonly mode: number
  readonly kind: 'file' | 'link'
  /** SHA-256 of the content, or of the link's target; null when it was not read. */
  readonly sha256: string | null
  /** The content, or the link's target; null when it is not kept. */
  readonly content: Uint8Array | null
}

/** Scans a workspace repeatedly and reports what changed in between. */
export class WorkspaceSnapshot {
  readonly #confinement: Confinement
  readonly #limits: SnapshotLimits
  #entries: Map<string, Entry> | null = null
  #keptBytes = 0
  /** When the last scan began: in epoch milliseconds, and by the steady clock. */
  #scannedAt = { time: 0, steadyMs: 0 }
  /** True when the last scan stopped before it had seen everything. */
  #partial = false

  constructor(confinement: Confinement, limits: SnapshotLimits = SNAPSHOT_LIMITS) {
    this.#confinement = confinement
    this.#limits = limits
  }

  /**
   * Files that changed since the last scan, by path; none at the first one. A deletion and a
   * creation of the same content are reported as one renamed file.
   */
  async changes(): Promise<readonly FileChange[]> {
    const before = this.#entries
    const wasPartial = this.#partial
    const previous = this.#scannedAt
    const scan = new Scan(this.#confinement, this.#limits, before, this.#keptBytes)
    this.#scannedAt = { time: Date.now(), steadyMs: performance.now() }
    // Files that are newer than that are new, also if the time of day was set back meanwhile.
    const { time, steadyMs } = this.#scannedAt
    const previousScan = Math.min(previous.time, time - (steadyMs - previous.steadyMs))
    await scan.run()
    this.#entries = scan.found
    this.#keptBytes = scan.keptBytes
    this.#partial = scan.partial
    if (before === null) return []
    const [old, now] = [new Map<string, Entry>(), new Map<string, Entry>()]
    for (const [path, { after, born }] of scan.changed) {
      const known = before.get(path)
      // A scan may reach files that a partial one missed; only files newer than that are creations.
      if (known === undefined && wasPartial && born < previousScan - UNSETTLED_MS) continue
      if (known !== undefined) old.set(path, known)
      now.set(path, after)
    }
    for (const [path, entry] of before) {
      const isGone = !scan.found.has(path) && (!scan.partial || !this.#exists(path))
      if (isGone) old.set(path, entry)
    }
    return await this.#bounded(await inSlices(changesBetween(old, now)))
  }

  #exists(path: string): boolean {
    const at = this.#confinement.at(join(this.#confinement.root, path))
    return lstatSync(at, { throwIfNoEntry: false }) !== undefined
  }

  /** Only what is reported is compared line by line, and other work is done in between. */
  async #bounded(found: readonly Change<Entry>[]): Promise<readonly FileChange[]> {
    let left = this.#limits.diffBytes
    const changes: FileChange[] = []
    for (const one of found.slice(0, this.#limits.changes)) {
      const change = await changeOf(one)
      left -= Buffer.byteLength(change.diff)
      changes.push(left >= 0 ? change : { ...change, diff: '' })
      await nextTurn()
    }
    return changes
  }
}

function renamed(path: string, from: string, before: Entry, after: Entry): FileChange {
  const lines = `rename from ${oneLine(from)}\nrename to ${oneLine(path)}\n`
  return {
    path,
    change: 'renamed',
    from,
    added_lines: 0,
    removed_lines: 0,
    before_sha256: before.sha256,
    after_sha256: after.sha256,
    diff: `${modeLines(before, after)}${lines}`,
  }
}

/** A change, with its diff when the content before and after was kept. */
async function changeOf({ path, oldPath, before, after }: Change<Entry>): Promise<FileChange> {
  if (oldPath !== null) return renamed(path, oldPath, before!, after!)
  const mode = before !== null && after !== null ? modeLines(before, after) : ''
  const known = (entry: Entry | null): boolean => entry === null || entry.content !== null
  if (known(before) && known(after)) {
    const change = await fileChange(path, before?.content ?? null, after?.content ?? null)
    return { ...change, diff: `${mode}${change.diff}` }
  }
  const change = before === null ? 'created' : after === null ? 'deleted' : 'modified'
  const hashes = {
    ...(before === null || before.sha256 !== null ? { before_sha256: before?.sha256 ?? null } : {}),
    ...(after === null || after.sha256 !== null ? { after_sha256: after?.sha256 ?? null } : {}),
  }
  return { path, change, added_lines: 0, removed_lines: 0, ...hashes, diff: mode }
}

function modeLines(before: Entry, after: Entry): string {
  if (before.mode === after.mode && before.kind === after.kind) return ''
  return `old mode ${modeOf(before)}\nnew mode ${modeOf(after)}\n`
}

interface Found {
  readonly after: Entry
  /** When the file was created or last changed, in epoch milliseconds. */
  readonly born: number
}

/** Walks the workspace level by level, so that a bound on entries omits the deepest. */
class Scan {
  readonly found: Map<string, Entry> = new Map()
  /** Files that are new or may differ, in the order of the walk. */
  readonly changed: [string, Found][] = []
  keptBytes: number
  partial = false
  readonly #confinement: Confinement
  readonly #limits: SnapshotLimits
  readonly #before: ReadonlyMap<string, Entry> | null
  #entriesSeen = 0

  constructor(
    confinement: Confinement,
    limits: SnapshotLimits,
    before: ReadonlyMap<string, Entry> | null,
    keptBytes: number,
  ) {
    this.#confinement = confinement
    this.#limits = limits
    this.#before = before
    this.keptBytes = before === null ? 0 : keptBytes
  }

  async run(): Promise<void> {
    try {
      using root = new WalkedRoot(this.#confinement.at(this.#confinement.root))
      let level = ['']
      for (let depth = 0; depth <= MAX_TREE_DEPTH && level.length > 0; depth++) {
        const below: string[] = []
        for (const path of level) await this.#folder(root, path, below)
        level = below
      }
      if (level.length > 0) this.partial = true
    } catch (error) {
      throwIfExhausted(error)
      // The folder is gone, or not permitted.
    }
    // The content of deleted files is no longer kept.
    for (const [path, { content }] of this.#before ?? []) {
      if (!this.found.has(path)) this.keptBytes -= content?.length ?? 0
    }
  }

  async #folder(root: WalkedRoot, path: string, below: string[]): Promise<void> {
    const opened = root.open(path)
    if (opened === null || opened === 'unreadable') return
    using folder = opened
    for (const entry of this.#entriesOf(folder)) {
      const child = childOf(path, entry.name)
      if (this.#confinement.isClosed(join(this.#confinement.root, child))) continue
      if (this.#entriesSeen >= this.#limits.entries) {
        this.partial = true
        return
      }
      this.#entriesSeen += 1
      if (this.#entriesSeen % SLICE === 0) await nextTurn()
      if (entry.kind === 'folder') below.push(child)
      else if (entry.kind !== 'other') this.#entry(folder, entry.name, child)
    }
  }

  #entriesOf(folder: WalkedFolder): readonly ListedEntry[] {
    const found = unlessGone(() => folder.list(MAX_TREE_ENTRIES))
    if (found === null || isRepository(found.entries.map(({ name }) => name))) return []
    // Names that are not UTF-8 could not be shown.
    const entries = found.entries.map(({ name, kind }) => ({ name: exactText(name), kind }))
    return entries.filter(({ name }) => !isPassedOver(name) && !/\p{Surrogate}/u.test(name))
  }

  #entry(folder: WalkedFolder, name: string, path: string): void {
    const stats = folder.stat(exactPath(name))
    if (stats === null || !(stats.isFile() || stats.isSymbolicLink())) return
    const known = this.#before?.get(path)
    const fingerprint = fingerprintOf(stats)
    if (known?.fingerprint === fingerprint) {
      this.found.set(path, known)
      return
    }
    this.keptBytes -= known?.content?.length ?? 0
    const after = this.#read(folder, name, stats, fingerprint)
    this.keptBytes += after.content?.length ?? 0
    this.found.set(path, after)
    this.changed.push([path, { after, born: Math.max(stats.birthtimeMs, stats.ctimeMs) }])
  }

  #read(folder: WalkedFolder, name: string, stats: Stats, fingerprint: string): Entry {
    const isSettled = Date.now() - stats.ctimeMs > UNSETTLED_MS
    const isLink = stats.isSymbolicLink()
    const kind = { mode: stats.mode & 0o777, kind: isLink ? 'link' : 'file' } as const
    const content = isLink ? folder.target(exactPath(name)) : this.#contentOf(folder, name, stats)
    if (content === null) return { ...kind, fingerprint, sha256: null, content: null }
    const fits = this.keptBytes + content.length <= this.#limits.keptBytes
    return {
      ...kind,
      fingerprint: isSettled ? fingerprint : '',
      sha256: hash('sha256', content),
      content: fits ? content : null,
    }
  }

  #contentOf(folder: WalkedFolder, name: string, stats: Stats): Uint8Array | null {
    if (stats.size > this.#limits.fileBytes) return null
    const found = folder.read(exactPath(name), this.#limits.fileBytes, (bytes) => {
      return Buffer.allocUnsafeSlow(bytes)
    })
    return found instanceof Object ? found.content : null
  }
}

function fingerprintOf({ ino, size, mode, mtimeMs, ctimeMs }: Stats): string {
  return `${ino} ${size} ${mode} ${mtimeMs} ${ctimeMs}`
}
