/**
 * What changed in the files of a workspace since the last look, for instance by a command.
 *
 * 1. Only files that may have changed are read, see `folder-scan.ts`.
 * 2. Entries, depth, kept content, reported changes and their diffs are bounded. Content beyond the
 *    bounds is reported without a diff; entries beyond the bounds are not reported.
 * 3. Version control, dependencies and caches are skipped.
 *
 * @module
 */
import { lstatSync, type Stats } from 'node:fs'
import { join } from 'node:path'
import { hash } from '../../internal/hash.js'
import { inSlices, LongWork, nextTurn } from '../../internal/time.js'
import { throwIfExhausted } from '../exhaustion.js'
import { modeOf } from './render-changes.js'
import { fileChange } from './diff.js'
import { childOf, filesBelow, newFolder, type KnownFile } from './folder-cache.js'
import { FolderScan, type Unread } from './folder-scan.js'
import { changesBetween, type Change } from './net-changes.js'
import { type Confinement } from './paths.js'
import { oneLine } from './text.js'
import type { FileChange } from './workspace.js'

/** Bounds of {@link FolderChanges}. */
export interface ChangeLimits {
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
export const CHANGE_LIMITS: ChangeLimits = {
  entries: 20_000,
  fileBytes: 256 * 1024,
  keptBytes: 16 * 1024 * 1024,
  changes: 200,
  diffBytes: 128 * 1024,
}

/** A file changed this recently may change again within one tick of the disk's clock. */
const UNSETTLED_MS = 50

/** A file as it was and is; null while it does not exist. */
interface Pair {
  readonly before: KnownFile | null
  readonly after: KnownFile | null
}

/** Looks at a workspace repeatedly and reports what changed in between. */
export class FolderChanges {
  readonly #confinement: Confinement
  readonly #limits: ChangeLimits
  #top = newFolder()
  #look = 0
  #keptBytes = 0
  /** When the last look began: in epoch milliseconds, and by the steady clock. */
  #lookedAt = { time: 0, steadyMs: 0 }
  /** True when the last look did not come to everything. */
  #isPartial = false
  /** What has changed since it was reported last, by path. */
  readonly #changed: Map<string, Pair> = new Map()

  constructor(confinement: Confinement, limits: ChangeLimits = CHANGE_LIMITS) {
    this.#confinement = confinement
    this.#limits = limits
  }

  /**
   * Files that changed since the last look, by path; none at the first one. A deletion and a
   * creation of the same content are reported as one renamed file.
   */
  async changes(): Promise<readonly FileChange[]> {
    const wasPartial = this.#isPartial
    const previous = this.#lookedAt
    this.#lookedAt = { time: Date.now(), steadyMs: performance.now() }
    // Files that are newer than that are new, also if the time of day was set back meanwhile.
    const { time, steadyMs } = this.#lookedAt
    const previousLook = Math.min(previous.time, time - (steadyMs - previous.steadyMs))
    const isFirst = this.#look === 0
    const late = await this.#scan(wasPartial ? previousLook - UNSETTLED_MS : null)
    if (isFirst) this.#changed.clear()
    const [old, now] = [new Map<string, KnownFile>(), new Map<string, KnownFile>()]
    for (const [path, { before, after }] of this.#changed) {
      if (before !== null && after === null && this.#isPartial && this.#exists(path)) continue
      if (before === null && late.has(path)) continue
      if (before !== null) old.set(path, before)
      if (after !== null) now.set(path, after)
    }
    this.#changed.clear()
    return await this.#bounded(await inSlices(changesBetween(old, now)))
  }

  /**
   * Notes what has changed.
   *
   * @param since reports no file as new that is older
   * @returns paths that are not new although nothing is known of them
   */
  async #scan(since: number | null): Promise<ReadonlySet<string>> {
    const late = new Set<string>()
    using scan = this.#open()
    if (scan === null) return late
    this.#look += 1
    await scan.run(this.#top)
    const work = new LongWork()
    for (const one of scan.unread) {
      if (work.isDue) await work.next()
      const path = childOf(one.path, one.name)
      // Names that are not UTF-8 could not be shown.
      if (/\p{Surrogate}/u.test(path)) continue
      if (since !== null && one.born < since) late.add(path)
      this.#read(scan, one, path)
    }
    scan.finish()
    this.#isPartial = scan.isPartial
    return late
  }

  /** Null when the folder is gone, or not permitted. */
  #open(): FolderScan | null {
    const { closed, root } = this.#confinement
    const { entries, fileBytes } = this.#limits
    const onGone = (path: string, file: KnownFile): void => this.#note(path, file, null)
    const rules = {
      closed, entries, fileBytes, keepsLarge: true, storeContents: false, isSecret: () => false,
      onGone,
    }
    try {
      return new FolderScan(this.#confinement.at(root), rules, this.#look + 1)
    } catch (error) {
      throwIfExhausted(error)
      for (const [path, file] of filesBelow(this.#top, '')) onGone(path, file)
      this.#top = newFolder()
      return null
    }
  }

  #read(scan: FolderScan, one: Unread, path: string): void {
    const known = one.folder.entries.get(one.name)
    const before = known === undefined || known.kind === 'folder' ? null : known
    const isLarge = one.size > this.#limits.fileBytes
    const found = isLarge ? null : scan.read(one, (bytes) => Buffer.allocUnsafeSlow(bytes))
    const stats = found?.stats ?? scan.stat(one)
    if (stats === null) return this.#note(path, before, null)
    const left = this.#limits.keptBytes - this.#keptBytes + (before?.content?.length ?? 0)
    const after = knownFile(one.kind, stats, found?.content ?? null, left, this.#look)
    one.folder.entries.set(one.name, after)
    this.#note(path, before, after)
  }

  #note(path: string, before: KnownFile | null, after: KnownFile | null): void {
    this.#keptBytes += (after?.content?.length ?? 0) - (before?.content?.length ?? 0)
    const noted = this.#changed.get(path)
    this.#changed.set(path, { before: noted === undefined ? before : noted.before, after })
  }

  #exists(path: string): boolean {
    const at = this.#confinement.at(join(this.#confinement.root, path))
    return lstatSync(at, { throwIfNoEntry: false }) !== undefined
  }

  /** Only what is reported is compared line by line, and other work is done in between. */
  async #bounded(found: readonly Change<KnownFile>[]): Promise<readonly FileChange[]> {
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

/** @param content null when it is not known */
function knownFile(
  kind: KnownFile['kind'],
  { ino, mode, mtimeMs, ctimeMs, size }: Stats,
  content: Uint8Array | null,
  bytesLeft: number,
  seenAt: number,
): KnownFile {
  return {
    kind, mode: mode & 0o777, size, ino, mtimeMs, ctimeMs, seenAt,
    sha256: content === null ? '' : hash('sha256', content),
    isSettled: content === null || Date.now() - ctimeMs > UNSETTLED_MS,
    isSecret: false,
    content: content !== null && content.length <= bytesLeft ? content : null,
    stored: 'unknown',
  }
}

/** A change, with its diff when the content before and after was kept. */
async function changeOf({ path, oldPath, before, after }: Change<KnownFile>): Promise<FileChange> {
  const isBoth = before !== null && after !== null
  const mode = isBoth ? modeLines(before, after) : ''
  if (oldPath !== null) {
    const lines = `rename from ${oneLine(oldPath)}\nrename to ${oneLine(path)}\n`
    const hashes = { before_sha256: before!.sha256, after_sha256: after!.sha256 }
    const counts = { added_lines: 0, removed_lines: 0, ...hashes, diff: `${mode}${lines}` }
    return { path, change: 'renamed', from: oldPath, ...counts }
  }
  if (before?.content !== null && after?.content !== null) {
    const change = await fileChange(path, before?.content ?? null, after?.content ?? null)
    return { ...change, diff: `${mode}${change.diff}` }
  }
  const change = before === null ? 'created' : after === null ? 'deleted' : 'modified'
  const hashes = {
    ...(before?.sha256 === '' ? {} : { before_sha256: before?.sha256 ?? null }),
    ...(after?.sha256 === '' ? {} : { after_sha256: after?.sha256 ?? null }),
  }
  return { path, change, added_lines: 0, removed_lines: 0, ...hashes, diff: mode }
}

function modeLines(before: KnownFile, after: KnownFile): string {
  if (before.mode === after.mode && before.kind === after.kind) return ''
  return `old mode ${modeOf(before)}\nnew mode ${modeOf(after)}\n`
}
