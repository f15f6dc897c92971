/**
 * What is remembered of a folder between two looks; see `folder-scan.ts`.
 *
 * @module
 */
import type { LeftOutReason } from '../tree.js'
import type { FolderEntry } from './tree-objects.js'

/** Is the content of a file in the store? `never`: the run's share was used up. */
export type Stored = 'unknown' | 'yes' | 'never'

/** A file or link as it was at the last look. */
export interface KnownFile {
  readonly kind: 'file' | 'link'
  readonly mode: number
  readonly size: number
  /** Empty for content that was not read: of trees, all is. */
  readonly sha256: string
  readonly ino: number
  readonly mtimeMs: number
  readonly ctimeMs: number
  readonly isSettled: boolean
  /** Left out for its content. */
  readonly isSecret: boolean
  /** Kept to show what changes; null for what is not kept. */
  readonly content: Uint8Array | null
  stored: Stored
  seenAt: number
}

/** How a folder was listed: as long as its own stats are these, it has the same names. */
export interface Listing {
  readonly ino: number
  readonly mtimeMs: number
  readonly ctimeMs: number
  /** Names that are not remembered, and why. */
  readonly omitted: readonly (readonly [reason: LeftOutReason, name: string])[]
}

/** A folder as it was at the last look. */
export interface KnownFolder {
  readonly kind: 'folder'
  readonly entries: Map<string, KnownFile | KnownFolder>
  /** Null if it must be listed in any case. */
  listing: Listing | null
  /** Permission bits; negative for a folder that is left out. */
  mode: number
  /** Hash of its object; empty for a folder that is left out. */
  sha256: string
  isStored: boolean
  /** The object does not show its entries any more. */
  isStale: boolean
  /** In its own files and links. */
  files: number
  bytes: number
  notStored: number
  seenAt: number
}

export function newFolder(): KnownFolder {
  return {
    kind: 'folder', entries: new Map(), listing: null, mode: -1, sha256: '', isStored: false,
    isStale: true, files: 0, bytes: 0, notStored: 0, seenAt: 0,
  }
}

/** All files and links below a folder, by path. */
export function* filesBelow(
  folder: KnownFolder,
  path: string,
): Generator<readonly [path: string, file: KnownFile]> {
  for (const [name, entry] of folder.entries) {
    const child = childOf(path, name)
    if (entry.kind === 'folder') yield* filesBelow(entry, child)
    else yield [child, entry]
  }
}

/** Nothing in a folder is known to be stored any more. */
export function forget(folder: KnownFolder): void {
  folder.isStored = false
  folder.isStale = true
  for (const entry of folder.entries.values()) {
    if (entry.kind === 'folder') forget(entry)
    else entry.stored = 'unknown'
  }
}

/** What the object of a folder shows. */
export function entriesOf(folder: KnownFolder): readonly FolderEntry[] {
  const shown: FolderEntry[] = []
  for (const [name, entry] of folder.entries) {
    const { mode, sha256 } = entry
    if (entry.kind === 'folder') {
      if (sha256 !== '') shown.push({ name, kind: 'folder', mode, sha256 })
    } else if (!entry.isSecret) {
      const { kind, size } = entry
      shown.push({ name, kind, mode, size, sha256, isStored: entry.stored !== 'never' })
    }
  }
  return shown
}

/** Counts the files and links of a folder anew. */
export function summarize(folder: KnownFolder): void {
  folder.files = 0
  folder.bytes = 0
  folder.notStored = 0
  for (const entry of folder.entries.values()) {
    if (entry.kind === 'folder' || entry.isSecret) continue
    folder.files += 1
    if (entry.kind === 'file') folder.bytes += entry.size
    if (entry.stored === 'never') folder.notStored += 1
  }
}

/** The path of an entry of a folder. */
export function childOf(path: string, name: string): string {
  return path === '' ? name : `${path}/${name}`
}
