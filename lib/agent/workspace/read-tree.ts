/**
 * Trees and contents from an object store; see `tree-objects.ts`.
 *
 * @module
 */
import { createHash } from 'node:crypto'
import { hash } from '../../internal/hash.js'
import { LongWork } from '../../internal/time.js'
import { CheckpointError, StoreError } from '../errors.js'
import type { ObjectStore } from '../object-store.js'
import type { LeftOut, Tree, TreeEntry } from '../tree.js'
import { MAX_TREE_DEPTH, MAX_TREE_ENTRIES } from './left-out.js'
import { FolderReader, MalformedTree, type FolderEntry } from './tree-objects.js'

/** Objects that are read at the same time. */
const AT_ONCE = 16
/** Bytes that are hashed without a pause. */
const HASHED_AT_ONCE = 4 * 1024 * 1024

/** What reading needs of an object store. */
export type ObjectReader = Pick<ObjectStore, 'get'>

/**
 * What was seen: hashes of objects, and with a slash behind them those of folders whose entries
 * were looked at. The two are apart because a file may have the content of such an object.
 */
export interface SeenObjects {
  has(hash: string): boolean
  add(hash: string): unknown
}

export interface Folder {
  readonly version: number
  readonly leftOut: readonly LeftOut[] | null
  readonly entries: readonly FolderEntry[]
}

/**
 * The tree of a checkpoint.
 *
 * @throws {@link StoreError} with `ERR_AGENT_STORE_CORRUPT`, which names the object that is missing
 * or damaged; what the store throws.
 */
export async function readTree(objects: ObjectReader, checkpointId: string): Promise<Tree> {
  const work = new LongWork()
  const folders = await readFolders(objects, checkpointId, work)
  const top = folders.get(checkpointId)!
  const entries = new Map<string, TreeEntry>()
  const modes = new Map<string, number>()
  const add = async (folder: Folder, path: string, depth: number): Promise<void> => {
    for (const entry of folder.entries) {
      const at = `${path}${entry.name}`
      if (work.isDue) await work.next()
      if (entry.kind === 'folder') {
        if (depth === MAX_TREE_DEPTH) throw damaged(entry.sha256, 'it is too deep in folders')
        modes.set(at, entry.mode ?? 0)
        assertFew()
        await add(folders.get(entry.sha256)!, `${at}/`, depth + 1)
        continue
      }
      const { kind, mode, sha256, size } = entry
      entries.set(at, { kind, mode, sha256, size, ...(entry.isStored ? {} : { stored: false }) })
      assertFew()
    }
  }
  const assertFew = (): void => {
    if (entries.size + modes.size <= MAX_TREE_ENTRIES) return
    throw damaged(checkpointId, 'it has too many entries')
  }
  await add(top, '', 0)
  return { entries, folders: top.version === 1 ? undefined : modes, leftOut: top.leftOut! }
}

/**
 * All objects that the tree of a checkpoint refers to and that were not seen yet, itself first;
 * they count as seen then. Folders that were looked at before are not looked at again.
 *
 * @throws as {@link readTree} does; `seen` is of no use then, because a part of it is missing.
 */
export async function* objectsOf(
  objects: ObjectReader,
  checkpointId: string,
  seen: SeenObjects,
): AsyncGenerator<string> {
  const work = new LongWork()
  let level = [checkpointId]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_TREE_DEPTH) throw damaged(checkpointId, 'it is too deep in folders')
    const below = new Set<string>()
    const fresh = level.filter((hash) => !seen.has(`${hash}/`))
    for (let at = 0; at < fresh.length; at += AT_ONCE) {
      const some = fresh.slice(at, at + AT_ONCE)
      const read = await Promise.all(
        some.map((hash) => readFolder(objects, hash, depth === 0, work)),
      )
      for (const [i, hash] of some.entries()) {
        seen.add(`${hash}/`)
        if (isNew(hash, seen)) yield hash
        for (const entry of read[i]!.entries) {
          if (work.isDue) await work.next()
          if (entry.kind === 'folder') below.add(entry.sha256)
          else if (entry.isStored && isNew(entry.sha256, seen)) yield entry.sha256
        }
      }
    }
    level = [...below]
  }
}

function isNew(hash: string, seen: SeenObjects): boolean {
  if (seen.has(hash)) return false
  seen.add(hash)
  return true
}

/**
 * The content of a file, or the target of a link.
 *
 * @param path names it in errors
 * @throws {@link CheckpointError} with `not_kept` for content that was not stored; {@link
 * StoreError} with `ERR_AGENT_STORE_CORRUPT` for content that is missing or damaged; what the store
 * throws.
 */
export async function readContent(
  objects: ObjectReader,
  entry: TreeEntry,
  path: string = `the file ${entry.sha256}`,
): Promise<Uint8Array> {
  if (entry.stored === false) {
    const message = `the content of ${path} was not stored: the run's share of storage was used up`
    throw new CheckpointError('not_kept', message, [path])
  }
  const content = await objects.get(entry.sha256)
  if (content === null) throw damaged(entry.sha256, `it is missing, with the content of ${path}`)
  if ((await hashOf(content, new LongWork())) === entry.sha256) return content
  throw damaged(entry.sha256, `its content, that of ${path}, does not have its hash`)
}

/** The hash of content of any size, with other work in between. */
async function hashOf(content: Uint8Array, work: LongWork): Promise<string> {
  if (work.isDue) await work.next()
  if (content.length <= HASHED_AT_ONCE) return hash('sha256', content)
  const hasher = createHash('sha256')
  for (let at = 0; at < content.length; at += HASHED_AT_ONCE) {
    if (work.isDue) await work.next()
    hasher.update(content.subarray(at, at + HASHED_AT_ONCE))
  }
  return hasher.digest('hex')
}

/** All folders of a tree, by hash: each is read once, however often it is in the tree. */
async function readFolders(
  objects: ObjectReader,
  checkpointId: string,
  work: LongWork,
): Promise<ReadonlyMap<string, Folder>> {
  const folders = new Map<string, Folder>()
  let entries = 0
  let level = [checkpointId]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_TREE_DEPTH) throw damaged(checkpointId, 'it is too deep in folders')
    const below = new Set<string>()
    for (let at = 0; at < level.length; at += AT_ONCE) {
      const some = level.slice(at, at + AT_ONCE)
      const read = await Promise.all(
        some.map((hash) => readFolder(objects, hash, depth === 0, work)),
      )
      for (const [i, hash] of some.entries()) {
        const folder = read[i]!
        folders.set(hash, folder)
        if (folder.version !== folders.get(checkpointId)!.version) {
          throw damaged(hash, 'it has another version than the folder at the top')
        }
        entries += folder.entries.length
        if (entries > 2 * MAX_TREE_ENTRIES) throw damaged(checkpointId, 'it has too many entries')
        for (const { kind, sha256 } of folder.entries) {
          if (kind === 'folder' && !folders.has(sha256)) below.add(sha256)
        }
      }
    }
    level = [...below]
  }
  return folders
}

/**
 * One folder of a tree; reading pauses when `work` is due.
 *
 * @throws as {@link readTree} does.
 */
export async function readFolder(
  objects: ObjectReader,
  id: string,
  isTop: boolean,
  work: LongWork = new LongWork(),
): Promise<Folder> {
  const bytes = await objects.get(id)
  if (bytes === null) throw damaged(id, 'it is missing')
  if ((await hashOf(bytes, work)) !== id) throw damaged(id, 'its content does not have its hash')
  const entries: FolderEntry[] = []
  try {
    const reader = new FolderReader(bytes)
    if ((reader.leftOut !== null) !== isTop) throw new MalformedTree('it is out of place')
    for (const entry of reader.entries()) {
      if (work.isDue) await work.next()
      entries.push(entry)
    }
    const { leftOut, version } = reader
    if (version === 1 && !isTop && entries.length === 0) throw new MalformedTree('it is empty')
    return { version, leftOut, entries }
  } catch (error) {
    if (error instanceof MalformedTree) throw damaged(id, error.message)
    throw error
  }
}

/** The error for an object that is missing or damaged. */
export function damaged(hash: string, what: string): StoreError {
  return new StoreError('ERR_AGENT_STORE_CORRUPT', `object ${hash} of a checkpoint: ${what}`)
}
