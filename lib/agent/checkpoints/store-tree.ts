import { posix } from 'node:path'
import { hash } from '../../internal/hash.js'
import { LongWork } from '../../internal/time.js'
import type { ObjectStore } from '../object-store.js'
import type { Tree } from '../tree.js'
import { encodeFolder, type FolderEntry } from '../workspace/tree-objects.js'

/** Objects that are stored at once. */
const BATCH = 500
/** Permissions of a folder about which a tree says nothing. */
const DEFAULT_MODE = 0o755

interface Folder {
  mode: number
  readonly files: FolderEntry[]
  readonly folders: Map<string, Folder>
}

/**
 * Stores the objects of a tree whose contents are stored, and returns its id. A folder is stored
 * after its subfolders, so that no stored object refers to a missing one. Call it in
 * `ObjectUse.capturing`.
 */
export async function storeTree(
  objects: Pick<ObjectStore, 'has' | 'put'>,
  { entries, folders, leftOut }: Tree,
): Promise<string> {
  const work = new LongWork()
  const top = newFolder()
  for (const [path, mode] of folders ?? []) {
    if (work.isDue) await work.next()
    folderAt(top, path).mode = mode
  }
  for (const [path, { kind, mode, sha256, size, stored }] of entries) {
    if (work.isDue) await work.next()
    const name = posix.basename(path)
    const isStored = stored !== false
    folderAt(top, folderOf(path)).files.push({ name, kind, mode, sha256, size, isStored })
  }
  let batch = new Map<string, Uint8Array>()
  const flush = async (): Promise<void> => {
    const there = await objects.has([...batch.keys()])
    const missing = [...batch].filter(([id]) => !there.has(id))
    batch = new Map()
    if (missing.length > 0)
      await objects.put(missing.map(([id, content]) => ({ hash: id, content })))
  }
  const add = async (content: Uint8Array): Promise<string> => {
    const id = hash('sha256', content)
    batch.set(id, content)
    if (batch.size === BATCH) await flush()
    return id
  }
  const entriesOf = async (folder: Folder): Promise<readonly FolderEntry[]> => {
    const all = [...folder.files]
    for (const [name, below] of folder.folders) {
      if (work.isDue) await work.next()
      const sha256 = await add(encodeFolder(await entriesOf(below)))
      all.push({ name, kind: 'folder', mode: below.mode, sha256 })
    }
    return all
  }
  const id = await add(encodeFolder(await entriesOf(top), leftOut))
  await flush()
  return id
}

function newFolder(): Folder {
  return { mode: DEFAULT_MODE, files: [], folders: new Map() }
}

function folderAt(top: Folder, path: string): Folder {
  let folder = top
  for (const name of path === '' ? [] : path.split('/')) {
    const below = folder.folders.get(name) ?? newFolder()
    folder.folders.set(name, below)
    folder = below
  }
  return folder
}

function folderOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')))
}
