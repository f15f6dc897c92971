import { LongWork } from '../../internal/time.js'
import type { Tree, TreeEntry } from '../tree.js'
import { MAX_TREE_DEPTH } from './left-out.js'
import { damaged, readFolder, type Folder, type ObjectReader } from './read-tree.js'
import type { FolderEntry } from './tree-objects.js'

/** The parts of two trees in which they differ. */
export interface TreeDifference {
  readonly before: Tree
  readonly after: Tree
}

/**
 * What differs between the trees of two checkpoints. Folders that are equal in both are not read,
 * so the cost follows the difference and not the size of the trees.
 *
 * @throws as `readTree` does.
 */
export async function readDifference(
  objects: ObjectReader,
  from: string,
  to: string,
): Promise<TreeDifference> {
  const [before, after] = [new Part(), new Part()]
  const work = new LongWork()
  const [top, newTop] = await Promise.all([
    readFolder(objects, from, true, work),
    readFolder(objects, to, true, work),
  ])
  const compare = async (
    old: readonly FolderEntry[],
    now: readonly FolderEntry[],
    path: string,
    depth: number,
  ): Promise<void> => {
    if (depth > MAX_TREE_DEPTH) throw damaged(to, 'it is too deep in folders')
    const others = new Map(now.map((entry) => [keyOf(entry), entry]))
    for (const entry of old) {
      const other = others.get(keyOf(entry))
      others.delete(keyOf(entry))
      if (other !== undefined && isEqual(entry, other)) continue
      before.add(path, entry)
      if (other !== undefined) after.add(path, other)
      if (entry.kind === 'folder') await below(entry, other, path, depth)
    }
    for (const entry of others.values()) {
      after.add(path, entry)
      if (entry.kind === 'folder') await below(undefined, entry, path, depth)
    }
  }
  const below = async (
    old: FolderEntry | undefined,
    now: FolderEntry | undefined,
    path: string,
    depth: number,
  ): Promise<void> => {
    if (old?.sha256 === now?.sha256) return
    const [a, b] = await Promise.all(
      [old, now].map(async (entry) =>
        entry === undefined ? [] : (await readFolder(objects, entry.sha256, false, work)).entries,
      ),
    )
    await compare(a!, b!, `${path}${(old ?? now)!.name}/`, depth + 1)
  }
  await compare(top.entries, newTop.entries, '', 0)
  return { before: before.of(top), after: after.of(newTop) }
}

/** Folders are compared with folders. */
function keyOf({ kind, name }: FolderEntry): string {
  return kind === 'folder' ? `${name}/` : name
}

function isEqual(a: FolderEntry, b: FolderEntry): boolean {
  return a.sha256 === b.sha256 && a.kind === b.kind && a.mode === b.mode
}

/** The part of a tree that differs from another one. */
class Part {
  readonly #entries: Map<string, TreeEntry> = new Map()
  readonly #folders: Map<string, number> = new Map()

  add(path: string, entry: FolderEntry): void {
    const at = `${path}${entry.name}`
    if (entry.kind === 'folder') {
      this.#folders.set(at, entry.mode ?? 0)
      return
    }
    const { kind, mode, sha256, size, isStored } = entry
    this.#entries.set(at, { kind, mode, sha256, size, ...(!isStored && { stored: false }) })
  }

  of({ version, leftOut }: Folder): Tree {
    const folders = version === 1 ? undefined : this.#folders
    return { entries: this.#entries, folders, leftOut: leftOut! }
  }
}
