import { LongWork } from '../../internal/time.js'
import type { Tree, TreeEntry } from '../tree.js'
import { MAX_TREE_DEPTH } from './left-out.js'
import { damaged, readFolder, type ObjectReader } from './read-tree.js'
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
  const [before, after] = [new Map<string, TreeEntry>(), new Map<string, TreeEntry>()]
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
      if (entry.kind !== 'folder') add(before, path, entry)
      if (other !== undefined && other.kind !== 'folder') add(after, path, other)
      if (entry.kind === 'folder') await below(entry, other, path, depth)
    }
    for (const entry of others.values()) {
      if (entry.kind === 'folder') await below(undefined, entry, path, depth)
      else add(after, path, entry)
    }
  }
  const below = async (
    old: FolderEntry | undefined,
    now: FolderEntry | undefined,
    path: string,
    depth: number,
  ): Promise<void> => {
    const [a, b] = await Promise.all(
      [old, now].map(async (entry) =>
        entry === undefined ? [] : (await readFolder(objects, entry.sha256, false, work)).entries,
      ),
    )
    await compare(a!, b!, `${path}${(old ?? now)!.name}/`, depth + 1)
  }
  await compare(top.entries, newTop.entries, '', 0)
  return {
    before: { entries: before, leftOut: top.leftOut! },
    after: { entries: after, leftOut: newTop.leftOut! },
  }
}

/** Folders are compared with folders. */
function keyOf({ kind, name }: FolderEntry): string {
  return kind === 'folder' ? `${name}/` : name
}

function isEqual(a: FolderEntry, b: FolderEntry): boolean {
  if (a.sha256 !== b.sha256 || a.kind !== b.kind) return false
  return a.kind === 'folder' || b.kind === 'folder' || a.mode === b.mode
}

function add(entries: Map<string, TreeEntry>, path: string, entry: FolderEntry): void {
  if (entry.kind === 'folder') return
  const { kind, mode, sha256, size, isStored, name } = entry
  entries.set(`${path}${name}`, { kind, mode, sha256, size, ...(!isStored && { stored: false }) })
}
